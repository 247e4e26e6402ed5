"""What an operator starts from: image, compose file, manifests, dashboard. Nothing here starts a container."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from server.metrics import Metrics
from server.settings import ServerSettings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
CUSTOM = {"kustomization.yaml", "monitor.yaml"}  # kinds that Kubernetes itself has no schema for


def tool(name: str) -> str:
    """A command of the test environment."""
    return str(Path(sys.executable).parent / name)


def manifest(name: str) -> dict:
    return yaml.safe_load((DEPLOY / "kubernetes" / name).read_text(encoding="utf-8"))


def dockerfile() -> str:
    return (ROOT / "Dockerfile.gpu").read_text(encoding="utf-8")


def test_the_dockerfile_is_without_complaint() -> None:
    result = subprocess.run([tool("hadolint"), ROOT / "Dockerfile.gpu"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_the_image_runs_as_nobody_in_particular_and_checks_itself() -> None:
    assert re.search(r"^USER 10001$", dockerfile(), re.MULTILINE)
    assert "HEALTHCHECK" in dockerfile()
    settings = {name.upper() for name in ServerSettings.model_fields}
    variables = set(re.findall(r"^ {4}([A-Z_]+)=", dockerfile(), re.MULTILINE))
    assert {"MODEL_ID", "JSON_OUTPUT"} <= variables & settings


@pytest.mark.slow
def test_the_images_install_steps_run(tmp_path: Path) -> None:
    """The build stage's steps, in folders of our own in place of the image's."""
    home, source = tmp_path / "opt", tmp_path / "src"
    source.mkdir()
    stage = dockerfile().split("\nFROM ")[1].replace("\\\n", "")
    copied, ran = 0, 0
    environment = {**os.environ, "PATH": f"{home}/bin:{os.environ['PATH']}"}
    for line in stage.splitlines():
        if line.startswith("COPY "):
            *names, target = line.split()[1:]
            for name in names:
                path = source / (Path(target) / Path(name).name if target.endswith("/") else target)
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(ROOT / name, path) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, path)
                copied += 1
        elif line.startswith("RUN "):
            command = line.removeprefix("RUN ").replace("/opt/late-chunking", str(home))
            python = f"'{sys.executable}' -m venv" if "-m venv" in command else "python -m venv"
            command = command.replace("python -m venv", python)
            subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=source, env=environment, check=True)
            ran += 1
    assert (copied, ran) == (6, 3)
    said = subprocess.run(
        [home / "bin" / "late-chunking", "info", "--json"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(said.stdout)["dimensions"] == 384
    helped = [home / "bin" / "late-chunking", "serve", "--help"]
    assert "API_KEY_FILE" in subprocess.run(helped, capture_output=True, text=True, check=True, cwd=tmp_path).stdout


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_are_valid(path: Path) -> None:
    if path.name in CUSTOM:
        assert {"apiVersion", "kind"} <= set(manifest(path.name))
        return
    command = [tool("kubernetes-validate"), "--strict", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed: kustomization not built")
def test_the_kustomization_builds() -> None:
    result = subprocess.run(["kubectl", "kustomize", DEPLOY / "kubernetes"], capture_output=True, text=True, check=True)
    kinds = {document["kind"] for document in yaml.safe_load_all(result.stdout)}
    assert kinds == {"Deployment", "HorizontalPodAutoscaler", "PersistentVolumeClaim", "Service", "ServiceMonitor"}


def test_names_and_times_in_the_manifests_fit_together() -> None:
    pod = manifest("deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (port,) = container["ports"]
    assert manifest("service.yaml")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert (
        manifest("monitor.yaml")["spec"]["endpoints"][0]["port"] == manifest("service.yaml")["spec"]["ports"][0]["name"]
    )
    assert f'"--port", "{port["containerPort"]}"' in dockerfile()
    environment = {item["name"]: item["value"] for item in container["env"]}
    assert set(environment) <= {name.upper() for name in ServerSettings.model_fields}
    wait = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > wait + float(environment["DRAIN_TIMEOUT"])
    labels = manifest("deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    for name in ("service.yaml", "monitor.yaml"):
        selector = manifest(name)["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels
    metric = manifest("autoscaler.yaml")["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric in exposed()


def exposed() -> set[str]:
    """The metrics of a server, by the names of their samples."""
    metrics = Metrics()
    metrics.watch("lc_queue_tokens", "", lambda: 0)
    metrics.watch("lc_requests_in_work", "", lambda: 0)
    families = list(text_string_to_metric_families(metrics.exposed().decode()))
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    return {f"{family.name}{suffix}" for family in families for suffix in suffixes[family.type]}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads((DEPLOY / "grafana" / "dashboards" / "late-chunking.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\blc_\w+", target["expr"])
    }
    assert len(asked) > 12
    assert asked <= exposed()


def test_the_compose_file_fits_the_image_and_its_companions() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    server = compose["services"]["server"]
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    assert set(server["environment"]) <= {name.upper() for name in ServerSettings.model_fields}
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists()
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["server:8080"]
    board = json.loads((DEPLOY / "grafana" / "dashboards" / "late-chunking.json").read_text(encoding="utf-8"))
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text(encoding="utf-8"))
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["datasources"][0]["uid"]}

"""The scripts run, and end as they say; how fast they are is not a test's matter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def last_line(*command: str) -> dict[str, object]:
    """Run a command and read the last line it prints."""
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_gpu_check_passes_on_the_cpu_too() -> None:
    results = last_line("scripts/gpu_check.sh")
    assert results["ok"] is True


@pytest.mark.slow
def test_bench_ends_with_one_line_of_ratios() -> None:
    ratios = last_line(sys.executable, "scripts/bench.py", "--quick")["ratios"]
    assert isinstance(ratios, dict)
    assert {
        "modernbert_12x384_long_document",
        "pooling_share",
        "recursive_fastest_peer",
        "minilm_chonkie",
        "host_tokens",
        "cost_by_length",
        "memory_embedded",
    } <= set(ratios)
    for entry in ratios.values():
        assert entry["value"] > 0
        assert {"at_least", "at_most"} & set(entry)


@pytest.mark.slow
def test_windows_are_measured(tmp_path: Path) -> None:
    text = "The ferry leaves at dawn. It carries salt. " * 20
    documents = [{"id": str(number), "text": f"{text}Number {number} is blue."} for number in range(3)]
    queries = [
        {"doc_id": one["id"], "query": f"which one is blue, {one['id']}?", "spans": [[len(text), len(one["text"])]]}
        for one in documents
    ]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    results = last_line(sys.executable, "scripts/measure_windows.py", str(tmp_path))["windows"]
    assert isinstance(results, dict)
    arms = results[tmp_path.name]
    assert arms["naive"]["difference"] == [0, 0, 0]
    assert all(0 <= arm["ndcg@10"] <= 1 for arm in arms.values())


@pytest.mark.slow
def test_topics_are_measured(tmp_path: Path) -> None:
    topics = ("The kite flies high. It dives.", "Bread needs flour. It must rest.", "Snow fell all night. It is deep.")
    documents = [{"id": str(number), "text": f"{topic} " * 4} for number, topic in enumerate(topics)]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    results = last_line(sys.executable, "scripts/measure_topics.py", str(tmp_path), "--percentile", "80")["topics"]
    assert isinstance(results, dict)
    assert len(results) == 3
    assert all(0 < arm["found"] <= 1 and 0 < arm["cut"] < 1 for arm in results.values())


@pytest.mark.slow
def test_the_demo_shows_its_table_and_writes_vectors() -> None:
    if not (ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("the demo would install an environment: run through scripts/test")
    (ROOT / "vectors.parquet").unlink(missing_ok=True)
    result = subprocess.run([ROOT / "scripts" / "demo"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "similarity to" in result.stdout
    assert (ROOT / "vectors.parquet").stat().st_size > 10_000

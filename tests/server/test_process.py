"""Faults tried on a server that runs as its users run it."""

import gzip
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from scripts.processes import Process

pytestmark = pytest.mark.slow

SOUND = {"documents": [{"id": "good", "text": "This is sound."}]}
FAULTY = {"documents": [{"id": "bad", "text": "word " * 75}]}  # 77 tokens with the special ones
LARGE = {"documents": [{"text": f"{number} " + "word " * 200} for number in range(20)]}


def until(condition, seconds: float = 30) -> None:
    """Wait for what the server will bring about."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came about")


def post(server: Process, body: dict, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/chunks", json=body, headers=headers, timeout=100)


@pytest.fixture(scope="module")
def server():
    with Process("--max-concurrent-requests", "64", "--request-timeout", "20", "--api-key", "one,two") as process:
        yield process


def keyed(server: Process, **options) -> httpx.Response:
    options.setdefault("headers", {})["Authorization"] = "Bearer two"
    return httpx.post(f"{server.url}/v1/chunks", timeout=60, **options)


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_told_to_stop_under_load_it_loses_nothing_that_it_took_on(accept: str) -> None:
    with Process() as server:
        answers: list[tuple[int, int] | str] = []
        stopping = threading.Event()

        def work() -> None:
            with httpx.Client(timeout=100, headers={"Accept": accept}) as client:
                while not stopping.is_set() or len(answers) < 12:
                    try:
                        answer = client.post(f"{server.url}/v1/chunks", json=LARGE)
                        lines = (
                            len(answer.text.splitlines()) if "ndjson" in accept else len(answer.json().get("data", []))
                        )
                        answers.append((answer.status_code, lines))
                    except httpx.ConnectError:
                        answers.append("refused")  # it no longer listens: nothing was taken on
                        return
                    except httpx.TransportError as error:
                        answers.append(repr(error))
                        return

        with ThreadPoolExecutor(12) as pool:
            jobs = [pool.submit(work) for _ in range(12)]
            until(lambda: server.metric("lc_requests_in_work") >= 6)
            server.terminate()
            stopping.set()
            assert server.process.wait(60) == 0, server.log
            for job in jobs:
                job.result()
    whole = [answer for answer in answers if isinstance(answer, tuple) and answer[0] == 200]
    assert len(whole) >= 6
    assert all(lines == 20 for _, lines in whole)
    others = [answer for answer in answers if answer not in whole]
    assert all(answer == "refused" or answer[0] == 503 for answer in others), others


def test_work_beyond_the_bound_does_not_keep_it_from_ending() -> None:
    slow = Process("--drain-timeout", "0.5", module=("tests.server.faulty", "slow", "serve"))
    with slow as server, ThreadPoolExecutor(1) as pool:
        job = pool.submit(post, server, {"documents": [{"text": "word " * 20_000}] * 3})
        until(lambda: server.metric("lc_requests_in_work") == 1)
        server.terminate()
        assert server.process.wait(30) == 0
        assert (job.result().status_code, job.result().json()["error_type"]) == (503, "not_ready")


@pytest.mark.parametrize(("kind", "status", "error_type"), [
    ("raise", 500, "backend"), ("oom", 503, "out_of_device_memory"), ("nan", 500, "non_finite_vector"),
])  # fmt: skip
def test_a_fault_of_the_device_fails_its_request_alone(kind: str, status: int, error_type: str) -> None:
    with Process(module=("tests.server.faulty", kind, "serve")) as server:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda body: post(server, body), [SOUND, FAULTY] * 8))
        for sound, faulty in zip(answers[::2], answers[1::2], strict=True):
            assert sound.status_code == 200
            assert (faulty.status_code, faulty.json()["error_type"]) == (status, error_type)
        assert server.ready()
        if kind != "raise":
            both = post(server, {"documents": [*SOUND["documents"], *FAULTY["documents"]]})
            assert [entry["object"] for entry in both.json()["data"]] == ["document", "error"]
        assert server.metric("lc_queue_tokens") == 0
        assert (server.metric("lc_oom_splits_total") > 0) == (kind == "oom")
        assert server.metric("lc_nonfinite_total") == (9 if kind == "nan" else 0)


def test_a_lost_device_ends_the_process_and_answers_everyone() -> None:
    with Process(module=("tests.server.faulty", "lost", "serve")) as server:
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(post, server, body) for body in [LARGE] * 6 + [FAULTY]]
            assert server.process.wait(60) == 1
            for job in jobs:
                error = job.exception()
                if error is None:
                    assert job.result().status_code in (200, 500, 503)
                else:
                    assert isinstance(error, httpx.ConnectError)
        last = server.log.strip().splitlines()[-1]
        assert last == "error: the device was lost, and the server with it; the log says more"


def test_clients_that_leave_take_their_work_with_them(server: Process) -> None:
    def leave() -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/chunks", json=LARGE, headers={"Authorization": "Bearer one"},
                       timeout=httpx.Timeout(30, read=0.3))  # fmt: skip

    with ThreadPoolExecutor(20) as pool:
        for job in [pool.submit(leave) for _ in range(20)]:
            job.result()
    read = 20 * 20 * 200
    with httpx.Client(headers={"Authorization": "Bearer one"}) as client:

        def metric(name: str) -> float:
            lines = client.get(f"{server.url}/metrics").text.splitlines()
            return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

        until(lambda: metric("lc_requests_in_work") == 0)
        until(lambda: metric("lc_queue_tokens") == 0)
        assert metric("lc_tokens_total") < read / 2
    assert server.ready()
    assert keyed(server, json=SOUND).status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_300_megabytes_are_refused_without_being_kept(server: Process, chunked: bool) -> None:
    before = server.memory
    piece = b"x" * 1_000_000

    def pieces():
        for _ in range(300):
            yield piece

    try:
        answer = keyed(server, content=pieces() if chunked else piece * 300)
        assert (answer.status_code, answer.json()["error_type"]) == (413, "payload_too_large")
    except (httpx.WriteError, httpx.ReadError):
        pass  # it has closed the connection in the middle of the rest
    assert server.memory < before + 150
    assert server.ready()


def test_a_gzip_bomb_over_a_socket(server: Process) -> None:
    before = server.memory
    bomb = gzip.compress(bytes(1_000_000_000), compresslevel=1)
    answer = keyed(server, content=bomb, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["error_type"]) == (413, "payload_too_large")
    assert server.memory < before + 150
    assert server.ready()


def test_a_slow_upload_ends_and_keeps_nobody_waiting() -> None:
    with Process("--request-timeout", "1") as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"POST /v1/chunks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: 1000\r\n\r\n{")  # fmt: skip
            assert post(server, SOUND).status_code == 200
            assert server.ready()
            slow.settimeout(10)
            answer = slow.makefile("rb").read()  # to its end: head and body may come one by one
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"upload_timeout" in answer
        until(lambda: server.metric("lc_requests_in_work") == 0)


def test_wrong_keys_learn_nothing(server: Process) -> None:
    for headers in ({}, {"Authorization": "Bearer on"}, {"Authorization": "Basic one"}):
        answer = httpx.post(f"{server.url}/v1/chunks", json=SOUND, headers=headers)
        assert (answer.status_code, answer.json()["error_type"]) == (401, "unauthorized")
        assert "one" not in answer.json()["error"].replace("one of", "")
    assert server.ready()


def test_what_cannot_be_loaded_is_one_line(tmp_path) -> None:
    with pytest.raises(AssertionError) as caught:
        Process("--model", str(tmp_path / "nothing"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("error: ")
    assert "nothing" in lines[0]
    assert "Traceback" not in str(caught.value)

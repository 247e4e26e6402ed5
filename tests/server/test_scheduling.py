"""Many requests at once, faults of the device, clients that leave."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from late_chunking.errors import NonFiniteVector, OutOfDeviceMemory
from server.app import create_app
from server.settings import ServerSettings
from tests.server.chunkers import Failing, Gated, Lost, Raising, Short

FAULTY = {"documents": [{"id": "bad", "text": "This is the FAULT."}]}
SOUND = {"documents": [{"id": "good", "text": "This is sound."}]}


def until(condition):
    """Wait for what another thread will bring about."""
    for _ in range(3_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came about")


def test_requests_at_once_share_rounds_and_get_their_own_vectors(embedded, started):
    chunker = Gated(embedded)
    client = started(chunker)
    texts = [f"Request number {number}. " + "It goes on. " * (number % 7) for number in range(40)]
    chunker.close()
    with ThreadPoolExecutor(40) as pool:
        bodies = [{"documents": [{"text": text}], "chunking": {"strategy": "sentences"}} for text in texts]
        answers = [pool.submit(client.post, "/v1/chunks", json=body) for body in bodies]
        scheduler = client.app.state.service._scheduler
        assert chunker.entered.wait(30)
        until(lambda: len(scheduler._waiting) + len(chunker.rounds[0]) == 40)
        chunker.gate.set()
        answers = [answer.result() for answer in answers]
    assert sum(map(len, chunker.rounds)) == 40
    assert len(chunker.rounds) <= 5
    for text, answer in zip(texts, answers, strict=True):
        assert answer.status_code == 200
        (document,) = answer.json()["data"]
        expected = embedded.embed(text, strategy="sentences")
        vectors = np.array([chunk["embedding"] for chunk in document["chunks"]])
        np.testing.assert_allclose(vectors, expected.vectors, atol=1e-6)


def test_a_round_takes_about_a_batch_beyond_its_first_request(embedded, started):
    chunker = Gated(embedded)
    client = started(chunker)
    long, middle = "word " * 6_000, "word " * 900
    chunker.close()
    scheduler = client.app.state.service._scheduler
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(client.post, "/v1/chunks", json=SOUND)]
        assert chunker.entered.wait(30)
        for waiting, text in enumerate([long, *[middle] * 4]):
            jobs.append(pool.submit(client.post, "/v1/chunks", json={"documents": [{"text": text}]}))
            until(lambda waiting=waiting: len(scheduler._waiting) == waiting + 1)
        chunker.gate.set()
        assert all(job.result().status_code == 200 for job in jobs)
    # Windows overlap, so 900 tokens are read as some 1,200; the budget is 2,048.
    assert [len(texts) for texts in chunker.rounds] == [1, 2, 2, 1]


@pytest.mark.parametrize("late", [False, True])
def test_an_unexpected_error_fails_its_round_and_the_thread_goes_on(embedded, started, late):
    client = started(Raising(embedded, RuntimeError("device lost"), late=late))
    body = {"documents": [*SOUND["documents"], *FAULTY["documents"]]}
    for _ in range(2):
        answer = client.post("/v1/chunks", json=body)
        assert (answer.status_code, answer.json()["error_type"]) == (500, "backend")
        assert "RuntimeError" in answer.json()["error"]
        assert client.post("/v1/chunks", json=SOUND).status_code == 200
    assert client.get("/readyz").status_code == 200
    answer = client.post("/v1/embeddings", json={"model": "embedded", "input": "FAULT"})
    assert answer.status_code == (200 if late else 500)


@pytest.mark.parametrize("late", [False, True])
def test_a_request_that_breaks_its_round_fails_alone(embedded, started, late):
    chunker = Gated(Raising(embedded, RuntimeError("device lost"), late=late))
    client = started(chunker)
    chunker.close()
    scheduler = client.app.state.service._scheduler
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(client.post, "/v1/chunks", json=SOUND)]
        assert chunker.entered.wait(30)
        for waiting, body in enumerate([SOUND, FAULTY, SOUND]):
            jobs.append(pool.submit(client.post, "/v1/chunks", json=body))
            until(lambda waiting=waiting: len(scheduler._waiting) == waiting + 1)
        chunker.gate.set()
        statuses = [job.result().status_code for job in jobs]
    # Where the error comes after the first outcome, even the one to blame has its own by then.
    assert statuses == [200, 200, 200 if late else 500, 200]


def test_ready_follows_a_device_that_is_lost_and_comes_back(embedded, started):
    chunker = Lost(embedded)
    client = started(chunker)
    assert client.get("/readyz").status_code == 200
    chunker.lost = True
    assert client.post("/v1/chunks", json=SOUND).status_code == 500
    assert client.get("/readyz").status_code == 500
    chunker.lost = False
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


def test_missing_outcomes_are_an_error_not_a_wait(embedded, started):
    client = started(Short(embedded))
    assert client.post("/v1/chunks", json=FAULTY).status_code == 500
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_leaves_nobody_waiting(embedded, started):
    client = started(Raising(embedded, SystemExit("the thread ends")))
    assert client.get("/readyz").status_code == 200
    for body in (FAULTY, SOUND):
        answer = client.post("/v1/chunks", json=body)
        assert (answer.status_code, answer.json()["error_type"]) == (503, "not_ready")
        assert answer.headers["Retry-After"]
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_one_document_that_fails_takes_its_place(embedded, started):
    client = started(Failing(embedded, NonFiniteVector("document 1 ('bad'): the vector of chunk 0 is not finite")))
    answer = client.post("/v1/chunks", json={"documents": [*SOUND["documents"], *FAULTY["documents"]]})
    assert answer.status_code == 200
    good, bad = answer.json()["data"]
    assert good["object"] == "document"
    assert bad == {
        "object": "error",
        "index": 1,
        "id": "bad",
        "error": "document 1 ('bad'): the vector of chunk 0 is not finite",
        "error_type": "non_finite_vector",
    }
    assert answer.json()["usage"]["total_tokens"] == good["tokens"]
    assert client.post("/v1/chunks", json=FAULTY).status_code == 500
    both = client.post("/v1/embeddings", json={"model": "embedded", "input": ["sound", "FAULT"]})
    assert both.status_code == 500
    assert both.json()["error"]["code"] == "non_finite_vector"


def test_out_of_memory_may_be_tried_again(embedded, started):
    answer = started(Failing(embedded, OutOfDeviceMemory("too much"))).post("/v1/chunks", json=FAULTY)
    assert (answer.status_code, answer.json()["error_type"]) == (503, "out_of_device_memory")
    assert answer.headers["Retry-After"]


def test_not_ready_until_the_device_has_embedded(embedded, started):
    chunker = Raising(embedded, RuntimeError("device lost"))
    run, chunker.run = chunker.run, lambda plans: iter(())
    client = started(chunker)
    assert client.get("/readyz").status_code in (500, 503)
    assert client.get("/healthz").status_code == 200
    client.app.state.service._scheduler._run = run
    assert client.get("/readyz").status_code == 200


def test_too_many_requests_are_refused_at_once(embedded, started):
    chunker = Gated(embedded)
    client = started(chunker, max_concurrent_requests=2)
    chunker.close()
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(client.post, "/v1/chunks", json=SOUND) for _ in range(2)]
        until(lambda: client.app.state.service._admitted == 2)
        answer = client.post("/v1/chunks", json=SOUND)
        assert (answer.status_code, answer.json()["error_type"]) == (429, "overloaded")
        assert answer.headers["Retry-After"]
        assert "2" in answer.json()["error"]
        other = client.post("/v1/embeddings", json={"model": "embedded", "input": "a"})
        assert other.json()["error"]["type"] == "rate_limit_error"
        assert client.get("/readyz").status_code == 200
        chunker.gate.set()
        assert [job.result().status_code for job in jobs] == [200, 200]
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


def test_a_request_refused_for_one_document_runs_none(embedded, started):
    chunker = Gated(embedded)
    client = started(chunker)
    chunker.rounds.clear()
    body = {"documents": [*SOUND["documents"], {"text": "Second.", "spans": [[0, 99]]}]}
    assert client.post("/v1/chunks", json=body).status_code == 422
    assert chunker.rounds == []


async def call(app, body, leaves: asyncio.Event):
    """Call the application as a server would, and be gone once told."""
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]
    sent = []

    async def receive():
        if messages:
            return messages.pop()
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
             "path": "/v1/chunks", "raw_path": b"/v1/chunks", "query_string": b"", "headers": headers,
             "client": ("test", 1), "server": ("test", 1), "root_path": ""}  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"]


def test_work_of_a_client_that_left_is_skipped(embedded):
    async def scene():
        chunker = Gated(embedded)
        app = create_app(ServerSettings(), chunker)
        async with app.router.lifespan_context(app):
            service = app.state.service
            chunker.close()
            stays, leaves = asyncio.Event(), asyncio.Event()
            first = asyncio.create_task(call(app, SOUND, stays))
            await asyncio.to_thread(chunker.entered.wait, 30)
            gone = asyncio.create_task(call(app, {"documents": [{"text": "Nobody waits for this."}]}, leaves))
            last = asyncio.create_task(call(app, {"documents": [{"text": "Somebody waits for this."}]}, stays))
            while len(service._scheduler._waiting) < 2:
                await asyncio.sleep(0.01)
            leaves.set()
            assert await gone == 499
            assert service._admitted == 2
            chunker.gate.set()
            assert await first == await last == 200
            assert service._admitted == 0
        assert chunker.rounds == [["This is sound."], ["Somebody waits for this."]]

    asyncio.run(scene())


def test_those_who_wait_when_the_server_stops_are_answered(embedded):
    async def scene():
        chunker = Gated(embedded)
        app = create_app(ServerSettings(), chunker)
        stays = asyncio.Event()
        async with app.router.lifespan_context(app):
            chunker.close()
            first = asyncio.create_task(call(app, SOUND, stays))
            await asyncio.to_thread(chunker.entered.wait, 30)
            second = asyncio.create_task(call(app, SOUND, stays))
            while not app.state.service._scheduler._waiting:
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0.2, chunker.gate.set)
        assert await first == 200
        assert await second == 503

    asyncio.run(scene())

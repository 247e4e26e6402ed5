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
from tests.server.chunkers import Between, Failing, Gate, Raising, around

FAULTY = {"documents": [{"id": "bad", "text": "This is the FAULT. " * 30}]}
SOUND = {"documents": [{"id": "good", "text": "This is sound."}]}


def until(condition):
    """Wait for what another thread will bring about."""
    for _ in range(3_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came about")


def scheduler_of(client):
    return client.app.state.service._scheduler


def waiting(client):
    """How many requests the scheduler has."""
    return len(scheduler_of(client)._jobs)


@pytest.fixture
def gate(embedded):
    return Gate(embedded.reader)


@pytest.fixture
def gated(embedded, started, gate):
    """A server behind a gate."""
    return started(around(embedded, gate))


def test_requests_at_once_share_batches_and_get_their_own_vectors(embedded, gated, gate):
    texts = [f"Request number {number}. " + "It goes on. " * (number % 7) for number in range(40)]
    gate.close()
    with ThreadPoolExecutor(40) as pool:
        bodies = [{"documents": [{"text": text}], "chunking": {"strategy": "sentences"}} for text in texts]
        answers = [pool.submit(gated.post, "/v1/chunks", json=body) for body in bodies]
        assert gate.entered.wait(30)
        until(lambda: waiting(gated) == 40)
        gate.open.set()
        answers = [answer.result() for answer in answers]
    assert sum(map(len, gate.batches)) == 40
    assert len(gate.batches) <= 5
    for text, answer in zip(texts, answers, strict=True):
        assert answer.status_code == 200
        (document,) = answer.json()["data"]
        expected = embedded.embed(text, strategy="sentences")
        vectors = np.array([chunk["embedding"] for chunk in document["chunks"]])
        np.testing.assert_allclose(vectors, expected.vectors, atol=1e-6)


def queued(client, gate, pool, bodies, route="/v1/chunks"):
    """Send requests that come to wait in this order, behind one that the device has."""
    gate.close()
    jobs = [pool.submit(client.post, "/v1/chunks", json=SOUND)]
    assert gate.entered.wait(30)
    for place, (path, body) in enumerate(bodies, start=2):
        jobs.append(pool.submit(client.post, path, json=body))
        until(lambda place=place: waiting(client) == place)
    gate.open.set()
    return [job.result() for job in jobs]


def test_many_documents_do_not_keep_a_single_one_waiting(gated, gate):
    many = {"documents": [{"text": f"Many {number}. " + "word " * 300} for number in range(50)]}
    one = {"documents": [{"text": "One alone."}]}
    with ThreadPoolExecutor(3) as pool:
        answers = queued(gated, gate, pool, [("/v1/chunks", many), ("/v1/chunks", one)])
    assert all(answer.status_code == 200 for answer in answers)
    first, second, *rest = gate.batches
    assert first == ["This is sound."]
    assert "One alone." in second
    assert len(rest) > 3


def test_queries_go_first(gated, gate):
    late = {"documents": [{"text": f"Document {number}. " + "word " * 300} for number in range(20)]}
    query = {"model": "embedded", "input": "Who asks?", "input_type": "query"}
    with ThreadPoolExecutor(3) as pool:
        answers = queued(gated, gate, pool, [("/v1/chunks", late), ("/v1/embeddings", query)])
    assert all(answer.status_code == 200 for answer in answers)
    assert gate.batches[1][0] == "Who asks?"


def test_two_large_requests_advance_at_one_pace(gated, gate):
    bodies = [
        ("/v1/chunks", {"documents": [{"text": f"{name} {number} " + "word " * 200} for number in range(30)]})
        for name in "AB"
    ]
    with ThreadPoolExecutor(3) as pool:
        answers = queued(gated, gate, pool, bodies)
    assert all(answer.status_code == 200 for answer in answers)
    order = [text[0] for batch in gate.batches[1:] for text in batch]
    for end in range(4, len(order)):
        assert abs(order[:end].count("A") - order[:end].count("B")) <= 2


def test_a_batch_holds_no_more_than_the_budget(embedded, gated, gate):
    read = []
    inner = gate.encoder
    gate.encoder = type(
        "Noting", (), {"encode": lambda self, batch: (read.append(batch.tokens), inner.encode(batch))[1]}
    )()
    many = {"documents": [{"text": "word " * (40 * number)} for number in range(1, 30)]}
    assert gated.post("/v1/chunks", json=many).status_code == 200
    assert max(read) <= embedded.batch_tokens
    assert sum(read[:-1]) > 0.6 * embedded.batch_tokens * (len(read) - 1)


def test_semantic_documents_are_cut_between_others(embedded, gated):
    texts = ["The kite flies high. It dives. Bread needs flour. It must rest. " * 3, "One. Two.", ""]
    body = {"documents": [{"text": text} for text in texts], "chunking": {"strategy": "semantic", "percentile": 50}}
    answer = gated.post("/v1/chunks", json={**body, "mode": "blend"})
    assert answer.status_code == 200
    for text, document in zip(texts, answer.json()["data"], strict=True):
        expected = embedded.embed(text, strategy="semantic", percentile=50, mode="blend")
        assert [chunk["text"] for chunk in document["chunks"]] == [chunk.text for chunk in expected.chunks]
        vectors = np.array([chunk["embedding"] for chunk in document["chunks"]]).reshape(-1, 384)
        np.testing.assert_allclose(vectors, expected.vectors, atol=1e-6)


def test_documents_to_cut_first_are_read_on_behind_any_number_of_empty_ones(gated):
    text = "The kite flies high. It dives. Bread needs flour. It must rest. " * 3
    body = {
        "documents": [{"text": text}, *[{"text": ""}] * 150, {"text": text}],
        "chunking": {"strategy": "semantic", "percentile": 50},
        "mode": "blend",
    }
    answer = gated.post("/v1/chunks", json=body)
    assert answer.status_code == 200
    first, *_, last = answer.json()["data"]
    assert first["chunks"]
    found = [np.array([chunk["embedding"] for chunk in document["chunks"]]) for document in (first, last)]
    np.testing.assert_allclose(*found, atol=1e-6)
    until(lambda: scheduler_of(gated).queued_tokens == 0)


def test_a_query_as_long_as_a_batch_is_none(gated, gate):
    long = {"model": "embedded", "input": ["word " * 3_000] * 3, "input_type": "query"}
    with ThreadPoolExecutor(3) as pool:
        answers = queued(gated, gate, pool, [("/v1/embeddings", long), ("/v1/chunks", SOUND)])
    assert all(answer.status_code == 200 for answer in answers)
    assert "This is sound." in gate.batches[1]


def test_a_device_that_hangs_ends_the_process(embedded, started, gate):
    client = started(around(embedded, gate), ready_timeout=0.02)
    life = client.app.state.service.life
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(client.post, "/v1/chunks", json=SOUND)
        assert gate.entered.wait(30)
        until(lambda: (life.check(), life.died)[1])
        gate.open.set()
        job.result()


def test_a_request_that_breaks_its_batch_fails_alone(embedded, started):
    client = started(around(embedded, Raising(embedded.reader, RuntimeError("device trouble"))))
    both = {"documents": [*SOUND["documents"], *FAULTY["documents"]]}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda body: client.post("/v1/chunks", json=body), [SOUND, both, SOUND, SOUND]))
    assert [answer.status_code for answer in answers] == [200, 500, 200, 200]
    assert answers[1].json()["error_type"] == "backend"
    assert "RuntimeError" in answers[1].json()["error"]
    assert "trouble" not in answers[1].json()["error"]
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


@pytest.mark.parametrize("error", [SystemExit("the thread ends"), RuntimeError("device lost")], ids=["ended", "lost"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lost_device_leaves_nobody_waiting_and_ends_the_process(embedded, started, error):
    client = started(around(embedded, Raising(embedded.reader, error, lost=True)))
    statuses = set()
    for body in (FAULTY, SOUND):
        answer = client.post("/v1/chunks", json=body)
        statuses.add((answer.status_code, answer.json()["error_type"]))
    assert statuses <= {(503, "not_ready"), (500, "backend")}
    assert client.app.state.service.life.died
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["error_type"]) == (503, "not_ready")
    assert answer.headers["Retry-After"]
    assert client.get("/healthz").status_code == 200


def test_a_fault_of_ours_while_finishing_fails_the_request_not_the_thread(embedded, started):
    chunker = around(embedded, Between(embedded.reader))
    finish = chunker.finish

    def faulty(pending):
        if "FAULT" in pending.plan.document.text:
            raise ZeroDivisionError("a slip")
        return finish(pending)

    chunker.finish = faulty
    client = started(chunker)
    answer = client.post("/v1/chunks", json=FAULTY)
    assert (answer.status_code, answer.json()["error_type"]) == (500, "backend")
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


def test_one_document_that_fails_takes_its_place(embedded, started):
    error = NonFiniteVector("the vector of chunk 0 is not finite")
    client = started(around(embedded, Failing(embedded.reader, error)))
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
    client = started(around(embedded, Failing(embedded.reader, OutOfDeviceMemory("too much"))))
    answer = client.post("/v1/chunks", json=FAULTY)
    assert (answer.status_code, answer.json()["error_type"]) == (503, "out_of_device_memory")
    assert answer.headers["Retry-After"]


def test_not_ready_until_the_device_has_read_something(embedded, started, gate):
    chunker = around(embedded, gate)
    inner = chunker.warm_up
    chunker.warm_up = lambda: (gate.open.wait(30), inner())
    gate.close()
    client = started(chunker, warm=False)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["error_type"]) == (503, "not_ready")
    assert client.get("/healthz").status_code == 200
    gate.open.set()
    until(lambda: client.get("/readyz").status_code == 200)


def test_not_ready_while_the_device_owes_an_answer_for_too_long(embedded, started, gate):
    client = started(around(embedded, gate), ready_timeout=0.05)
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(client.post, "/v1/chunks", json=SOUND)
        assert gate.entered.wait(30)
        until(lambda: client.get("/readyz").status_code == 503)
        assert "owed an answer" in client.get("/readyz").json()["error"]
        gate.open.set()
        assert job.result().status_code == 200
    assert client.get("/readyz").status_code == 200


def test_too_many_requests_are_refused_at_once(embedded, started, gate):
    client = started(around(embedded, gate), max_concurrent_requests=2)
    gate.close()
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(client.post, "/v1/chunks", json=SOUND) for _ in range(2)]
        until(lambda: client.app.state.service.life.in_work == 2)
        answer = client.post("/v1/chunks", json=SOUND)
        assert (answer.status_code, answer.json()["error_type"]) == (429, "overloaded")
        assert answer.headers["Retry-After"]
        assert "2" in answer.json()["error"]
        other = client.post("/v1/embeddings", json={"model": "embedded", "input": "a"})
        assert other.json()["error"]["type"] == "rate_limit_error"
        assert client.get("/readyz").status_code == 200
        gate.open.set()
        assert [job.result().status_code for job in jobs] == [200, 200]
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


def test_more_tokens_than_may_wait_are_refused_unless_alone(embedded, started, gate):
    client = started(around(embedded, gate), max_queued_tokens=100)
    large = {"documents": [{"text": "word " * 200}]}
    assert client.post("/v1/chunks", json=large).status_code == 200
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(client.post, "/v1/chunks", json=SOUND)
        assert gate.entered.wait(30)
        answer = client.post("/v1/chunks", json=large)
        assert (answer.status_code, answer.json()["error_type"]) == (429, "overloaded")
        assert "max_queued_tokens, 100" in answer.json()["error"]
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        gate.open.set()
        assert job.result().status_code == 200
    until(lambda: scheduler_of(client).queued_tokens == 0)
    assert client.post("/v1/chunks", json=large).status_code == 200


def test_a_request_ends_at_its_deadline(embedded, started, gate):
    client = started(around(embedded, gate), request_timeout=0.3)
    gate.close()
    answer = client.post("/v1/chunks", json=SOUND)
    assert (answer.status_code, answer.json()["error_type"]) == (503, "deadline_exceeded")
    assert "request_timeout, 0.3 s" in answer.json()["error"]
    assert client.app.state.service.life.in_work == 0
    gate.open.set()
    until(lambda: scheduler_of(client).queued_tokens == 0)
    assert client.post("/v1/chunks", json=SOUND).status_code == 200


def test_a_request_refused_for_one_document_reads_none(gated, gate):
    gate.batches.clear()
    body = {"documents": [*SOUND["documents"], {"text": "Second.", "spans": [[0, 99]]}]}
    assert gated.post("/v1/chunks", json=body).status_code == 422
    assert gate.batches == []


async def call(app, body, leaves: asyncio.Event, **headers):
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

    given = [(b"content-type", b"application/json"), *((k.encode(), v.encode()) for k, v in headers.items())]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
             "path": "/v1/chunks", "raw_path": b"/v1/chunks", "query_string": b"", "headers": given,
             "client": ("test", 1), "server": ("test", 1), "root_path": ""}  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize("accept", ["*/*", "application/x-ndjson"])
def test_work_of_a_client_that_left_is_skipped(embedded, gate, accept):
    async def scene():
        app = create_app(ServerSettings(), around(embedded, gate))
        async with app.router.lifespan_context(app):
            service = app.state.service
            while not service._scheduler.warm:
                await asyncio.sleep(0.01)
            gate.close()
            stays, leaves = asyncio.Event(), asyncio.Event()
            first = asyncio.create_task(call(app, SOUND, stays))
            await asyncio.to_thread(gate.entered.wait, 30)
            nobodys = {"documents": [{"text": "Nobody waits for this."}]}
            gone = asyncio.create_task(call(app, nobodys, leaves, accept=accept))
            last = asyncio.create_task(call(app, {"documents": [{"text": "Somebody waits for this."}]}, stays))
            while len(service._scheduler._jobs) < 3:
                await asyncio.sleep(0.01)
            leaves.set()
            assert await gone == 499
            assert service.life.in_work == 2
            gate.open.set()
            assert await first == await last == 200
            assert service.life.in_work == 0
        assert gate.batches == [["This is sound."], ["Somebody waits for this."]]

    asyncio.run(scene())


def test_those_who_wait_when_the_server_stops_are_answered(embedded, gate):
    async def scene():
        app = create_app(ServerSettings(), around(embedded, gate))
        stays = asyncio.Event()
        async with app.router.lifespan_context(app):
            while not app.state.service._scheduler.warm:
                await asyncio.sleep(0.01)
            gate.close()
            first = asyncio.create_task(call(app, SOUND, stays))
            await asyncio.to_thread(gate.entered.wait, 30)
            second = asyncio.create_task(call(app, SOUND, stays))
            while len(app.state.service._scheduler._jobs) < 2:
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0.2, gate.open.set)
        assert {await first, await second} <= {200, 503}

    asyncio.run(scene())

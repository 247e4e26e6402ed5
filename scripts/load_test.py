"""A server under load: throughput against the library's, overload, memory over time.

    python scripts/load_test.py [--quick] [--soak 600]

Starts ``late-chunking serve`` on loopback with the embedded model. The last line of stdout is JSON.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import httpx
import torch
from processes import Process
from shapes import alternating
from splitting import sample

from late_chunking import LateChunker

CLIENTS = 16
CROWD = 200
ADMITTED = 32
CHARACTERS = 3_000
CHUNKING = {"strategy": "recursive", "size": 64}
Results = dict[str, Any]


def main() -> int:
    """Run all parts; the exit code tells whether they hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; figures mean little")
    parser.add_argument("--soak", type=float, default=60, help="seconds of mixed load")
    arguments = parser.parse_args()
    count, times = (32, 1) if arguments.quick else (192, 3)
    text = sample(CHARACTERS * count)
    documents = [text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS)]
    results: Results = {}
    parts = {
        "throughput": lambda: throughput(documents, times),
        "crowd": lambda: crowd(documents[: 8 if arguments.quick else 32]),
        "soak": lambda: soak(documents[:64], 5 if arguments.quick else arguments.soak),
    }
    for name, part in parts.items():
        results[name] = part()
        print(f"{name}: {json.dumps(results[name])}", flush=True)
    results["ok"] = all(results[name]["ok"] for name in parts)
    print(json.dumps(results))
    return 0 if results["ok"] else 1


def throughput(documents: list[str], times: int) -> Results:
    """Compare documents a second of 16 clients with the library's own, alternating."""
    chunker = LateChunker("embedded", device="cpu")
    bodies = [{"documents": [{"text": text}], "chunking": CHUNKING} for text in documents]
    with Process() as server:

        def library() -> None:
            for _ in chunker.embed_many(documents, **CHUNKING):
                pass

        def served() -> None:
            statuses = Counter(status for status, _ in together(server, bodies, CLIENTS))
            if set(statuses) != {200}:
                raise SystemExit(f"not all were answered: {statuses}")

        own, over_http = alternating([library, served], torch.device("cpu"), times)
        code = stopped(server)
    ratio = own / over_http
    return {
        "ok": ratio >= 0.9 and code == 0,
        "library_documents_per_second": round(len(documents) / own, 1),
        "served_documents_per_second": round(len(documents) / over_http, 1),
        "ratio": round(ratio, 3),
    }


def crowd(documents: list[str]) -> Results:
    """Let 200 clients ask at once where 32 may: the others are told so at once, and nobody waits for ever."""
    body = {"documents": [{"text": text} for text in documents], "chunking": CHUNKING}
    with Process("--max-concurrent-requests", str(ADMITTED)) as server:
        together(server, [body] * ADMITTED, ADMITTED)
        before = server.memory
        answers = together(server, [body] * CROWD, CROWD)
        time.sleep(1)
        grown = server.memory - before
        code = stopped(server)
    statuses = Counter(status for status, _ in answers)
    refused = [seconds for status, seconds in answers if status == 429]
    accepted = [seconds for status, seconds in answers if status == 200]
    ok = set(statuses) == {200, 429} and statuses[200] >= ADMITTED and code == 0
    return {
        "ok": ok and median(refused) < 0.1 * median(accepted) and grown < 0.1 * before,
        "statuses": dict(statuses),
        "refused_after_seconds": {"median": round(median(refused), 3), "most": round(max(refused), 3)},
        "accepted_after_seconds": {"median": round(median(accepted), 2), "most": round(max(accepted), 2)},
        "memory_before_mb": round(before),
        "memory_grown_mb": round(grown, 1),
    }


def soak(documents: list[str], seconds: float) -> Results:
    """Mix requests of all kinds, wrong ones and abandoned ones too, and watch the memory."""
    statuses: Counter[str] = Counter()
    lock = threading.Lock()
    memory: list[float] = []

    def work(server: Process, number: int, until: float) -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            turn = number
            while time.monotonic() < until:
                turn += 1
                try:
                    status = str(mixed(client, documents, turn).status_code)
                except httpx.ReadTimeout:
                    status = "left"
                with lock:
                    statuses[status] += 1

    with Process() as server, ThreadPoolExecutor(CLIENTS) as pool:
        until = time.monotonic() + seconds
        jobs = [pool.submit(work, server, number, until) for number in range(CLIENTS)]
        while time.monotonic() < until:
            memory.append(server.memory)
            time.sleep(min(1.0, seconds / 20))
        for job in jobs:
            job.result()
        code = stopped(server)
    first, last = (median(part) for part in (memory[len(memory) // 4 : len(memory) // 2], memory[-len(memory) // 4 :]))
    return {
        "ok": last < 1.05 * first and code == 0 and set(statuses) <= {"200", "400", "422", "left"},
        "seconds": seconds,
        "requests": dict(statuses),
        "memory_second_quarter_mb": round(first),
        "memory_last_quarter_mb": round(last),
    }


def mixed(client: httpx.Client, documents: list[str], turn: int) -> httpx.Response:
    """Send one request of some kind."""
    text = documents[turn % len(documents)]
    body: dict[str, Any] = {"documents": [{"text": text}], "chunking": CHUNKING}
    match turn % 8:
        case 0:
            return client.post("/v1/embeddings", json={"model": "embedded", "input": text[:200], "input_type": "query"})
        case 1:
            return client.post("/v1/boundaries", json={**body, "chunking": {"strategy": "sentences"}})
        case 2:
            return client.post("/v1/chunks", json=body, headers={"Accept": "application/x-ndjson"})
        case 3:
            return client.post("/v1/chunks", json={**body, "chunking": {"strategy": "semantic"}})
        case 4:
            return client.post("/v1/chunks", json={"documents": [{"text": text, "spans": [[0, 10**6]]}]})
        case 5:
            return client.post("/v1/chunks", content=b"{", headers={"Content-Type": "application/json"})
        case 6:
            return client.post("/v1/chunks", json={**body, "mode": "blend"}, timeout=httpx.Timeout(60, read=0.2))
        case _:
            return client.post("/v1/chunks", json=body)


def together(server: Process, bodies: list[dict[str, Any]], clients: int) -> list[tuple[int, float]]:
    """Send bodies from so many clients; give each one's status and seconds."""
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    with httpx.Client(base_url=server.url, timeout=300, limits=limits) as client, ThreadPoolExecutor(clients) as pool:

        def ask(body: dict[str, Any]) -> tuple[int, float]:
            begun = time.perf_counter()
            status = client.post("/v1/chunks", json=body).status_code
            return status, time.perf_counter() - begun

        return list(pool.map(ask, bodies))


def stopped(server: Process) -> int:
    """Tell a server to stop, and give its exit code."""
    server.terminate()
    return server.process.wait(120)


if __name__ == "__main__":
    sys.exit(main())

"""A server under load: throughput against the library's, overload, memory over time.

    python scripts/load_test.py [--quick] [--soak 600]

Starts ``late-chunking serve`` on loopback with the embedded model. The last line of stdout is JSON.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any

import httpx
from splitting import sample

from late_chunking import LateChunker

CLIENTS = 16
CROWD = 200
ADMITTED = 32
CHARACTERS = 3_000
CHUNKING = {"strategy": "recursive", "size": 64}
Results = dict[str, Any]


class Server:
    """A server in a process of its own."""

    def __init__(self, *options: str) -> None:
        """Start it, and wait until it is ready."""
        self._log = TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        command = [sys.executable, "-m", "late_chunking", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=self._log, stdout=self._log)
        self.url = ""
        while not self.url or not self._is_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended: {self._said()}")
            found = re.search(r"listening on ([\d.]+) port (\d+)", self._said())
            self.url = f"http://{found[1]}:{found[2]}" if found else ""
            time.sleep(0.1)

    def _said(self) -> str:
        """Give its log."""
        return os.pread(self._log.fileno(), 1_000_000, 0).decode()

    def _is_ready(self) -> bool:
        """Ask whether it is ready."""
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def memory(self) -> float:
        """Its resident memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def stop(self) -> int:
        """Tell it to stop, and give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self._log.close()
        return code


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
    server = Server()
    bodies = [{"documents": [{"text": text}], "chunking": CHUNKING} for text in documents]
    own, served = [], []
    for turn in range(times + 1):
        begun = time.perf_counter()
        for _ in chunker.embed_many(documents, **CHUNKING):
            pass
        between = time.perf_counter()
        answers = together(server, bodies, CLIENTS)
        ended = time.perf_counter()
        if any(status != 200 for status, _ in answers):
            raise SystemExit(f"not all were answered: {Counter(status for status, _ in answers)}")
        if turn:
            own.append(len(documents) / (between - begun))
            served.append(len(documents) / (ended - between))
    code = server.stop()
    ratio = median(served) / median(own)
    return {
        "ok": ratio >= 0.9 and code == 0,
        "library_documents_per_second": round(median(own), 1),
        "served_documents_per_second": round(median(served), 1),
        "ratio": round(ratio, 3),
    }


def crowd(documents: list[str]) -> Results:
    """Let 200 clients ask at once where 32 may: the others are told so at once, and nobody waits for ever."""
    server = Server("--max-concurrent-requests", str(ADMITTED))
    warm = [{"documents": [{"text": text} for text in documents], "chunking": CHUNKING}] * ADMITTED
    together(server, warm, ADMITTED)
    before = server.memory
    answers = together(server, [warm[0]] * CROWD, CROWD)
    statuses = Counter(status for status, _ in answers)
    refused = [seconds for status, seconds in answers if status == 429]
    accepted = [seconds for status, seconds in answers if status == 200]
    time.sleep(1)
    grown = server.memory - before
    code = server.stop()
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
    server = Server()
    until = time.monotonic() + seconds
    statuses: Counter[str] = Counter()
    lock = threading.Lock()
    memory: list[float] = []

    def work(number: int) -> None:
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

    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(work, number) for number in range(CLIENTS)]
        while time.monotonic() < until:
            memory.append(server.memory)
            time.sleep(min(1.0, seconds / 20))
        for job in jobs:
            job.result()
    code = server.stop()
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


def together(server: Server, bodies: list[dict[str, Any]], clients: int) -> list[tuple[int, float]]:
    """Send bodies from so many clients; give each one's status and seconds."""
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    with httpx.Client(base_url=server.url, timeout=300, limits=limits) as client, ThreadPoolExecutor(clients) as pool:

        def ask(body: dict[str, Any]) -> tuple[int, float]:
            begun = time.perf_counter()
            status = client.post("/v1/chunks", json=body).status_code
            return status, time.perf_counter() - begun

        return list(pool.map(ask, bodies))


if __name__ == "__main__":
    sys.exit(main())

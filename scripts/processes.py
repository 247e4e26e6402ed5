"""A server in a process of its own, started as a user starts it. For the load test, and for tests."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

import httpx

ROOT = Path(__file__).parents[1]


class Process:
    """A running server.

    Attributes:
        process: what runs it.
        url: where it listens.
    """

    def __init__(self, *options: str, module: tuple[str, ...] = ("late_chunking", "serve")) -> None:
        """Start it on a port of its own, and wait until it is ready.

        Args:
            *options: of ``late-chunking serve``.
            module: what is run, and its first arguments.

        Raises:
            AssertionError: with its log, if it ends instead.
        """
        self._log = TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", *module, "--port", "0", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=self._log,
            stdout=self._log,
            text=True,
        )
        self.url = ""
        try:
            self._wait()
        except BaseException:
            self.process.kill()
            raise

    def _wait(self) -> None:
        """Wait until it is ready."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log
            if not self.url and (found := re.search(r"listening on ([\d.]+) port (\d+)", self.log)):
                self.url = f"http://{found[1]}:{found[2]}"
            if self.url:
                try:
                    if httpx.get(f"{self.url}/readyz").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
            time.sleep(0.05)
        raise AssertionError(f"it never became ready: {self.log}")

    @property
    def log(self) -> str:
        """What it has said."""
        self._log.flush()
        return os.pread(self._log.fileno(), 10_000_000, 0).decode()

    @property
    def memory(self) -> float:
        """Its resident memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def ready(self) -> bool:
        """Whether it says that it is ready."""
        return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200

    def metric(self, name: str) -> float:
        """One metric without labels."""
        text = httpx.get(f"{self.url}/metrics", timeout=10).text
        return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])

    def terminate(self) -> None:
        """Tell it to stop."""
        self.process.send_signal(signal.SIGTERM)

    def __enter__(self) -> "Process":
        """Begin."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        self._log.close()

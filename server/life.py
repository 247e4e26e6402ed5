"""Starting, draining, ending: how one server process lives, and how it comes to its end."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from server.errors import NotReady, Overloaded, error_answer
from server.metrics import Metrics

_LAST_SECONDS: Final = 5  # for answers that say that there will be none
_WORK: Final = "POST"  # what a server is for; all else asks how it is


class Life:
    """Where a server process stands.

    Attributes:
        draining: whether it has been told to stop, and takes no new work.
        died: whether it has lost its device, and must end.
        in_work: requests that are being worked on, from their first byte to the last of the answer.
        give_up: answers whoever still waits, and starts nothing more.
    """

    give_up: Callable[[], None]

    def __init__(self) -> None:
        """Begin."""
        self.draining = False
        self.died = False
        self.in_work = 0
        self.give_up = lambda: None

    def die(self) -> None:
        """End the process, soon; may be called from any thread."""
        self.died = True


class Admission:
    """ASGI middleware: counts requests in work, and refuses what would be too many before it is read."""

    def __init__(self, app: ASGIApp, life: Life, limit: int, metrics: Metrics) -> None:
        """Guard an application."""
        self._app = app
        self._life = life
        self._limit = limit
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer 429 or 503 at once."""
        if scope["type"] != "http" or scope["method"] != _WORK:
            await self._app(scope, receive, send)
            return
        error: Exception | None = None
        if self._life.draining:
            error = NotReady("the server is stopping")
            self._metrics.rejected.labels("draining").inc()
        elif self._life.in_work >= self._limit:
            error = Overloaded(
                f"{self._life.in_work} requests are in work, as many as max_concurrent_requests, {self._limit}"
            )
            self._metrics.rejected.labels("concurrent_requests").inc()
        if error is not None:
            await error_answer(error, scope["path"])(scope, receive, send)
            return
        self._life.in_work += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._life.in_work -= 1


class Server(uvicorn.Server):
    """Listens until it is told to stop, then answers what it has taken on; or until the device is lost."""

    def __init__(self, config: uvicorn.Config, life: Life, drain_timeout: float) -> None:
        """Make a server.

        Args:
            config: how it listens.
            life: what it shares with the application.
            drain_timeout: seconds in which requests in work may end once it is told to stop.
        """
        super().__init__(config)
        self._life = life
        self._drain_timeout = drain_timeout
        self._drained_by: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; told a second time by a keyboard, stop at once."""
        if self._life.draining and sig == signal.SIGINT:
            self.force_exit = self.should_exit = True
        if not self._life.draining:
            self._life.draining = True
            self._drained_by = time.monotonic() + self._drain_timeout

    async def on_tick(self, counter: int) -> bool:
        """Tell, ten times a second, whether to end."""
        ended = await super().on_tick(counter)
        if self._life.died:
            # The scheduler has answered whoever waited.
            self.config.timeout_graceful_shutdown = _LAST_SECONDS
            return True
        if self._drained_by is not None:
            overdue = time.monotonic() > self._drained_by
            if overdue:
                self._life.give_up()
                self.config.timeout_graceful_shutdown = _LAST_SECONDS
            return ended or overdue or not self._life.in_work
        return ended

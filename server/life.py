"""Starting, draining, ending: how one server process lives, and how it comes to its end."""

import math
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import anyio
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import NotReady, Overloaded, error_answer
from server.metrics import Metrics

_LAST_SECONDS: Final = 5  # for answers that say that there will be none
_ASKING: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # how the server is; all else is work


class Life:
    """Where a server process stands.

    Attributes:
        draining: whether it has been told to stop, and takes no new work.
        died: whether it has lost its device, and must end.
        in_work: requests that are being worked on, from their first byte to the last of the answer.
        give_up: answers whoever still waits, and starts nothing more.
        check: looks whether the device still answers, and lets the process die if not.
    """

    give_up: Callable[[], None]
    check: Callable[[], None]

    def __init__(self) -> None:
        """Begin."""
        self.draining = False
        self.died = False
        self.in_work = 0
        self.give_up = self.check = lambda: None

    def die(self) -> None:
        """End the process, soon; may be called from any thread."""
        self.died = True


class Admission:
    """ASGI middleware: counts requests in work, and refuses what would be too many before it is read."""

    def __init__(self, app: ASGIApp, life: Life, limit: int, timeout: float, metrics: Metrics) -> None:
        """Guard an application. A client that takes nothing of its answer for so many seconds is left."""
        self._app = app
        self._life = life
        self._limit = limit
        self._timeout = timeout
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer 429 or 503 at once."""
        if scope["type"] != "http" or scope["method"] in _ASKING:
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

        async def send_in_time(message: Message) -> None:
            with anyio.fail_after(self._timeout):
                await send(message)

        self._life.in_work += 1
        try:
            await self._app(scope, receive, send_in_time)
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
        self._life.check()
        if self._life.died:
            # The scheduler has answered whoever waited.
            self.config.timeout_graceful_shutdown = _LAST_SECONDS
            return True
        if self._drained_by is not None:
            left = self._drained_by - time.monotonic()
            if left < 0:
                self._life.give_up()
            # Answers that are finished may still be on their way to slow clients.
            self.config.timeout_graceful_shutdown = max(_LAST_SECONDS, math.ceil(left))
            return ended or left < 0 or not self._life.in_work
        return ended

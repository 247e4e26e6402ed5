"""What every answer carries, whatever became of its request: an id and times."""

import logging
import re
import time
import traceback
import uuid
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import error_answer
from server.scheduler import Timings

TIMINGS: Final = "timings"
_SANE_ID: Final = re.compile(r"[A-Za-z0-9._:\-]{1,128}")
# The innermost ones; those around them are the web framework's.
_FRAMES: Final = 8

_logger = logging.getLogger(__name__)


class Exchange:
    """ASGI middleware around all others: request id, times, and an answer to what nobody caught."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and complete its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        request_id = _request_id(Headers(scope=scope))
        state = scope.setdefault("state", {})
        started = False

        async def complete(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, seconds in _times(state.get(TIMINGS), time.perf_counter() - begun).items():
                    headers[name] = f"{1000 * seconds:.2f}"
            await send(message)

        try:
            await self._app(scope, receive, complete)
        except Exception as error:
            _log(error, request_id, scope)
            if started:
                raise
            await error_answer(error, scope["path"])(scope, receive, complete)


def _request_id(headers: Headers) -> str:
    """Give the client's own id if it is fit for a header and a log line, else a new one."""
    given = headers.get("x-request-id", "")
    return given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex


def _times(timings: Timings | None, total: float) -> dict[str, float]:
    """Name the times, in seconds; 0 for what a request never came to."""
    spent = timings or Timings(0.0, 0.0, 0.0)
    return {
        "x-total-time": total,
        "x-tokenization-time": spent.tokenization,
        "x-queue-time": spent.queue,
        "x-inference-time": spent.inference,
    }


def _log(error: Exception, request_id: str, scope: Scope) -> None:
    """Log where an error came from, without its message, which may quote a document."""
    frames = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    _logger.error("request %s: %s %s: %s\n%s", request_id, scope["method"], scope["path"], type(error).__name__, frames)

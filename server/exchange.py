"""What every answer carries, whatever became of its request: an id, times, a log line, metrics, a trace."""

import logging
import re
import time
import uuid
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import error_answer
from server.jobs import Timings
from server.logs import trace_of
from server.metrics import Metrics
from server.tracing import Tracer
from server.work import TIMINGS

TIMES: Final = ("x-total-time", "x-tokenization-time", "x-queue-time", "x-inference-time")
_SANE_ID: Final = re.compile(r"[A-Za-z0-9._:\-]{1,128}")
_NO_ROUTE: Final = "none"  # one label for all paths that there are not
_NO_ANSWER: Final = 499
# Asked for every few seconds by whoever watches: worth a line only if they fail.
_QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})

_logger = logging.getLogger("server.access")


class Exchange:
    """ASGI middleware around all others: request id, times, and an answer to what nobody caught."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracer: Tracer | None) -> None:
        """Wrap an application."""
        self._app = app
        self._metrics = metrics
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and complete its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        state = scope.setdefault("state", {})
        status = _NO_ANSWER
        started = False

        async def complete(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, seconds in _times(state.get(TIMINGS), time.perf_counter() - begun).items():
                    headers[name] = f"{1000 * seconds:.2f}"
            await send(message)

        span = self._tracer.begin(scope["method"], headers) if self._tracer else None
        try:
            await self._app(scope, receive, complete)
        except Exception as error:
            _logger.error(  # noqa: TRY400
                "request %s: %s %s: %s", request_id, scope["method"], _route(scope), trace_of(error),
                extra={"request_id": request_id},
            )  # fmt: skip
            if started:  # the connection is broken off, so that nobody takes the answer for a whole one
                raise ConnectionAbortedError("the answer broke off") from None
            await error_answer(error, scope["path"])(scope, receive, complete)
        finally:
            total, route = time.perf_counter() - begun, _route(scope)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.request_seconds.labels(route).observe(total)
            timings = state.get(TIMINGS) or Timings()
            if span is not None:
                span.end(route, status, request_id, timings)
            _log_answer(scope, route, status, request_id, timings, total)


def _request_id(headers: Headers) -> str:
    """Give the client's own id if it is fit for a header and a log line, else a new one."""
    given = headers.get("x-request-id", "")
    return given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex


def _times(timings: Timings | None, total: float) -> dict[str, float]:
    """Name the times, in seconds; 0 for what a request never came to."""
    spent = timings or Timings()
    return dict(zip(TIMES, (total, spent.tokenization, spent.queue, spent.inference), strict=True))


def _route(scope: Scope) -> str:
    """Name the route that a request came to, as it was declared: paths are clients' own, and without end."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", _NO_ROUTE))


def _log_answer(scope: Scope, route: str, status: int, request_id: str, timings: Timings, total: float) -> None:
    """Log a request by its measures alone; texts, keys and unknown paths stay out of it."""
    if route in _QUIET and status < 400:
        return
    measures = {
        "request_id": request_id,
        "method": scope["method"],
        "route": route,
        "status": status,
        "total_ms": round(1000 * total, 1),
        "queue_ms": round(1000 * timings.queue, 1),
        "tokenization_ms": round(1000 * timings.tokenization, 1),
        "inference_ms": round(1000 * timings.inference, 1),
    }
    _logger.info("%s %s %s in %s ms, request %s", scope["method"], route, status, measures["total_ms"], request_id,
                 extra=measures)  # fmt: skip

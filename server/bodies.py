"""Bodies of requests: how large they may be, and how they are parsed."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio
import orjson
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import PayloadTooLarge, error_answer

_DRAIN_BYTES: Final = 64_000_000
_DRAIN_SECONDS: Final = 2.0


class BodyLimit:
    """ASGI middleware: reads a request's body, and answers 413 once it is too large.

    A body that says its length is refused at once; one that comes in pieces, as soon as the
    pieces are too many. Nothing is kept or parsed before.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        """Guard an application. The limit is in bytes."""
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the whole body on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared) > self._limit:
            await self._refuse(f"the body has {declared} bytes", scope, receive, send)
            return
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self._limit:
                await self._refuse(f"the body has at least {size} bytes", scope, receive, send, more=more)
                return
        await self._app(scope, _replayed(b"".join(pieces), receive), send)

    async def _refuse(self, found: str, scope: Scope, receive: Receive, send: Send, *, more: bool = True) -> None:
        """Answer 413, and close: what was not read would be taken for the next request.

        First a little more is read and thrown away. A connection that is closed with unread data
        is reset, and a client that is still sending may then lose the answer.
        """
        thrown = 0
        with anyio.move_on_after(_DRAIN_SECONDS):
            while more and thrown < _DRAIN_BYTES:
                message = await receive()
                thrown += len(message.get("body", b""))
                more = message.get("more_body", False)
        error = PayloadTooLarge(
            f"{found}, more than payload_limit, {self._limit}; send fewer documents at once",
            headers={"Connection": "close"},
        )
        await error_answer(error, scope["path"])(scope, receive, send)


class JsonRequest(Request):
    """A request whose JSON is read by orjson.

    Faster than the standard library, and stricter: no NaN, no lone surrogates, no nesting
    without end, so that whatever is echoed can be written again.
    """

    async def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Parse the body.

        Raises:
            json.JSONDecodeError: if it is not JSON in UTF-8.
        """
        return orjson.loads(await self.body())


class JsonRoute(APIRoute):
    """A route that reads its body as a `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the usual handler."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give the body once, then what the connection says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay

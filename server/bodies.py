"""Bodies of requests: how large they may be, packed and unpacked, and how they are parsed."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import anyio
import orjson
import zstandard
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.errors import MalformedRequest, PayloadTooLarge, RequestError, UnknownEncoding, UploadTimeout, error_answer

_DRAIN_BYTES: Final = 64_000_000
_DRAIN_SECONDS: Final = 2.0
_GZIP: Final = 31  # zlib's window bits for a gzip header
_PIECE: Final = 1_048_576
_MOST_MEMBERS: Final = 64
_LARGEST_WINDOW: Final = 8_388_608  # what every decoder should take, by RFC 8878
# Larger bodies are parsed on a thread, so that other requests go on.
_LARGE: Final = 262_144


class BodyReader:
    """ASGI middleware: reads a request's body and unpacks it, and answers 413 once it is too large.

    A body that says its length is refused at once; one that comes in pieces, as soon as the pieces
    are too many; a packed one, as soon as what is unpacked is. Nothing is kept or parsed before.
    """

    def __init__(self, app: ASGIApp, limit: int, timeout: float) -> None:
        """Guard an application. The limit is in bytes, packed or not; the timeout in seconds."""
        self._app = app
        self._limit = limit
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the whole body on, or refuse it."""
        if scope["type"] != "http" or scope["method"] != "POST":  # no other route takes a body
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            with anyio.fail_after(self._timeout):
                body = await self._read(headers, receive)
            if body is None:
                return
            encoding = headers.get("content-encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                body = await asyncio.to_thread(unpacked, body, encoding, self._limit)
        except TimeoutError:
            await self._refuse(
                UploadTimeout(f"the body took longer than request_timeout, {self._timeout:g} s"), scope, receive, send
            )
        except RequestError as error:
            await self._refuse(error, scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """Read a body; None if the client has left.

        Raises:
            PayloadTooLarge: once it is too large.
        """
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._limit:
            raise _too_large(f"the body has {declared[:20]} bytes", self._limit)
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self._limit:
                raise _too_large(f"the body has at least {size} bytes", self._limit)
        return b"".join(pieces)

    async def _refuse(self, error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an error, and close: what was not read would be taken for the next request.

        First a little more is read and thrown away. A connection that is closed with unread data
        is reset, and a client that is still sending may then lose the answer.
        """
        thrown, more = 0, isinstance(error, PayloadTooLarge)
        with anyio.move_on_after(_DRAIN_SECONDS):
            while more and thrown < _DRAIN_BYTES:
                message = await receive()
                thrown += len(message.get("body", b""))
                more = message.get("more_body", False)
        error.headers["Connection"] = "close"
        await error_answer(error, scope["path"])(scope, receive, send)


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Unpack a body, up to a limit: a small one may hold gigabytes.

    Raises:
        PayloadTooLarge: if it holds more.
        MalformedRequest: if it is not packed so.
        UnknownEncoding: if it is packed in a way that is not known.
    """
    unpack = _UNPACK.get(encoding)
    if unpack is None:
        raise UnknownEncoding(f"Content-Encoding must be one of {', '.join(_UNPACK)}, got {encoding!r:.80}")
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in unpack(body):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise _too_large(f"the body, unpacked, has at least {size} bytes", limit)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise MalformedRequest(f"the body is not {encoding}: {error!s:.80}") from error
    return b"".join(pieces)


def _from_gzip(body: bytes) -> Iterator[bytes]:
    """Unpack gzip in pieces. Each member makes a copy of what comes after it: there may not be many."""
    for _ in range(_MOST_MEMBERS):
        if not body:
            return
        member = zlib.decompressobj(_GZIP)
        while not member.eof:
            piece = member.decompress(body, _PIECE)
            body = member.unconsumed_tail
            if not piece and not body and not member.eof:
                raise EOFError("it ends too early")
            yield piece
        body = member.unused_data
    raise EOFError(f"it has more than {_MOST_MEMBERS} members")


def _from_zstd(body: bytes) -> Iterator[bytes]:
    """Unpack zstd in pieces."""
    with zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(
        body, read_across_frames=True
    ) as reader:
        while piece := reader.read(_PIECE):
            yield piece


_UNPACK: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {
    "gzip": _from_gzip,
    "zstd": _from_zstd,
}


def _too_large(found: str, limit: int) -> PayloadTooLarge:
    """Say that a body is too large."""
    return PayloadTooLarge(f"{found}, more than payload_limit, {limit}; send fewer documents at once")


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
        body = await self.body()
        return await asyncio.to_thread(orjson.loads, body) if len(body) > _LARGE else orjson.loads(body)


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

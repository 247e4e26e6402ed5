"""The bearer keys that a server may ask for."""

import secrets
from collections.abc import Sequence
from typing import Final

from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from server.errors import Unauthorized, error_answer

# Probes of an orchestrator carry no key, and learn nothing but "alive" and "ready".
_OPEN: Final = frozenset({"/healthz", "/readyz"})
_PROBING: Final = frozenset({"GET", "HEAD"})
_SCHEME: Final = "bearer "

DOCUMENTED: Final = HTTPBearer(auto_error=False, description="Asked for if the server was started with API keys.")


class KeyCheck:
    """ASGI middleware: refuses requests without one of the keys, before their body is read."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        """Guard an application."""
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401."""
        is_open = scope["type"] != "http" or (scope["path"] in _OPEN and scope["method"] in _PROBING)
        if is_open or self._holds_key(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        error = Unauthorized(
            "the Authorization header must be 'Bearer ' and one of the server's API keys",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await error_answer(error, scope["path"])(scope, receive, send)

    def _holds_key(self, headers: Headers) -> bool:
        """Compare with every key in constant time, so that answers do not tell how much of one is right."""
        given = headers.get("authorization", "")
        if given[: len(_SCHEME)].lower() != _SCHEME:
            return False
        key = given[len(_SCHEME) :].strip().encode("latin-1")
        return sum(secrets.compare_digest(key, known) for known in self._keys) > 0  # none is passed over

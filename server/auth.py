"""The bearer key that a server may ask for."""

import secrets
from typing import Final

from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from server.errors import Unauthorized, error_answer

# Probes of an orchestrator carry no key, and learn nothing but "alive" and "ready".
_OPEN: Final = frozenset({"/healthz", "/readyz"})
_SCHEME: Final = "bearer "

DOCUMENTED: Final = HTTPBearer(auto_error=False, description="Asked for if the server was started with an API key.")


class KeyCheck:
    """ASGI middleware: refuses requests without the key, before their body is read."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        """Guard an application."""
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401."""
        if scope["type"] != "http" or scope["path"] in _OPEN or self._holds_key(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        error = Unauthorized(
            "the Authorization header must be 'Bearer ' and the server's API key",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await error_answer(error, scope["path"])(scope, receive, send)

    def _holds_key(self, headers: Headers) -> bool:
        """Compare the key in constant time, so that answers do not tell how much of it is right."""
        given = headers.get("authorization", "")
        if given[: len(_SCHEME)].lower() != _SCHEME:
            return False
        return secrets.compare_digest(given[len(_SCHEME) :].strip().encode("latin-1"), self._key)

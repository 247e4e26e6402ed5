"""The application: routes, middleware and error handlers around one model."""

import copy
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio.to_thread
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from uvicorn.config import LOGGING_CONFIG

import late_chunking
from late_chunking import LateChunker, LateChunkingError
from server.answers import JsonAnswer
from server.auth import KeyCheck
from server.bodies import BodyLimit
from server.errors import RequestError, error_answer
from server.exchange import Exchange
from server.routes import ROUTERS
from server.service import Service
from server.settings import ServerSettings
from server.validation import http_error, validation_error

_DESCRIPTION: Final = (
    "Each document is read once, as a whole, and the token vectors of each chunk are averaged: "
    "a chunk's vector knows the document around it. Spans are `[start, end)` in Unicode code points."
)

_logger = logging.getLogger(__name__)


def create_app(settings: ServerSettings, chunker: LateChunker | None = None) -> FastAPI:
    """Make the application.

    Args:
        settings: how it is run.
        chunker: a model that is already loaded; without one, it is loaded when the application
            starts, and what is wrong with it is raised there.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        model = await anyio.to_thread.run_sync(settings.load_chunker) if chunker is None else chunker
        service = Service(settings, model)
        await service.start()
        app.state.service = service
        _logger.info("serving %s on %s", settings.model_name, service.info.device)
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(title="late-chunking", version=late_chunking.__version__, description=_DESCRIPTION, lifespan=lifespan)
    for router in ROUTERS:
        app.include_router(router)
    _handle_errors(app)
    # The last one added is the outermost: an id and times are on every answer, and the key is
    # asked for before a body is read.
    app.add_middleware(BodyLimit, limit=settings.payload_limit)
    if settings.api_key is not None:
        app.add_middleware(KeyCheck, key=settings.api_key.get_secret_value())
    app.add_middleware(Exchange)
    return app


def serve(settings: ServerSettings) -> None:
    """Load the model, then listen until told to stop.

    Raises:
        LateChunkingError: if the model cannot be loaded; nothing listens then.
        OSError: at once, if the address cannot be had.
    """
    address = (settings.hostname, settings.port)
    family = socket.AF_INET6 if ":" in settings.hostname else socket.AF_INET
    try:
        # Taken before the model is loaded, but connections are refused until it is.
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise OSError(f"cannot listen on {settings.hostname} port {settings.port}: {error.strerror}") from error
    with listener:
        app = create_app(settings, settings.load_chunker())
        config = uvicorn.Config(app, log_config=_log_config())
        _logger.info("listening on %s port %s", *listener.getsockname()[:2])
        uvicorn.Server(config).run(sockets=[listener])


def _handle_errors(app: FastAPI) -> None:
    """Answer every expected kind of error from the one table."""

    @app.exception_handler(RequestError)
    @app.exception_handler(LateChunkingError)
    async def _own(request: Request, error: Exception) -> JsonAnswer:
        return error_answer(error, request.url.path)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JsonAnswer:
        return error_answer(validation_error(error), request.url.path)

    @app.exception_handler(HTTPException)
    async def _routing(request: Request, error: HTTPException) -> JsonAnswer:
        path = request.url.path
        return error_answer(http_error(error, request.method, path), path)


def _log_config() -> dict[str, Any]:
    """Let this package log the way uvicorn does."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["loggers"]["server"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config

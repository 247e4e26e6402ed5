"""The application: routes, middleware and error handlers around one model."""

import logging
import logging.config
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio.to_thread
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import late_chunking
from late_chunking import LateChunker, LateChunkingError
from late_chunking.errors import DeviceError
from server.answers import JsonAnswer
from server.auth import KeyCheck
from server.bodies import BodyReader
from server.errors import RequestError, error_answer
from server.exchange import TIMES, Exchange
from server.life import Admission, Life, Server
from server.logs import log_config
from server.metrics import Metrics
from server.routes import ROUTERS
from server.service import Service
from server.settings import ServerSettings
from server.tracing import Tracer
from server.validation import http_error, validation_error

_DESCRIPTION: Final = (
    "Each document is read once, as a whole, and the token vectors of each chunk are averaged: "
    "a chunk's vector knows the document around it. Spans are `[start, end)` in Unicode code points, "
    "unless `offset_unit` says otherwise."
)

_LAST_SPANS_SECONDS: Final = 5

_logger = logging.getLogger(__name__)


def create_app(settings: ServerSettings, chunker: LateChunker | None = None, life: Life | None = None) -> FastAPI:
    """Make the application.

    Args:
        settings: how it is run.
        chunker: a model that is already loaded; without one, it is loaded when the application
            starts, and what is wrong with it is raised there.
        life: where the process around it stands.

    Raises:
        InvalidParameter: if a setting is wrong.
        MissingDependency: if traces are to be sent, and a package for that is missing.
    """
    alive = life or Life()
    metrics = Metrics()
    keys = settings.api_keys()
    tracer = Tracer(settings.otlp_endpoint, settings.model_name) if settings.otlp_endpoint else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        model = await anyio.to_thread.run_sync(settings.load_chunker) if chunker is None else chunker
        service = Service(settings, model, alive, metrics)
        service.start()
        app.state.service = service
        _logger.info("serving %s on %s", settings.model_name, service.info.device)
        try:
            yield
        finally:
            await service.stop()
            if tracer is not None:
                with anyio.move_on_after(_LAST_SPANS_SECONDS):
                    await anyio.to_thread.run_sync(tracer.close, abandon_on_cancel=True)

    app = FastAPI(title="late-chunking", version=late_chunking.__version__, description=_DESCRIPTION, lifespan=lifespan)
    for router in ROUTERS:
        app.include_router(router)
    _handle_errors(app)
    # The last one added is the outermost: an id and times are on every answer, the key is asked for
    # before a request counts as one in work, and that before its body is read.
    app.add_middleware(BodyReader, limit=settings.payload_limit, timeout=settings.request_timeout)
    app.add_middleware(
        Admission, life=alive, limit=settings.max_concurrent_requests, timeout=settings.request_timeout, metrics=metrics
    )
    if keys:
        app.add_middleware(KeyCheck, keys=keys)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["X-Request-ID", "Retry-After", *TIMES],
        )
    app.add_middleware(Exchange, metrics=metrics, tracer=tracer)
    return app


def serve(settings: ServerSettings) -> None:
    """Load the model, then listen until told to stop; requests in work are then answered first.

    Raises:
        LateChunkingError: if the model cannot be loaded; nothing listens then.
        OSError: at once, if the address cannot be had.
        DeviceError: if the device is lost.
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
    logs = log_config(json_output=settings.json_output)
    logging.config.dictConfig(logs)
    with listener:
        life = Life()
        app = create_app(settings, settings.load_chunker(), life)
        config = uvicorn.Config(app, log_config=logs, access_log=False)
        _logger.info("listening on %s port %s", *listener.getsockname()[:2])
        Server(config, life, settings.drain_timeout).run(sockets=[listener])
    if life.died:
        raise DeviceError("the device was lost, and the server with it; the log says more")


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

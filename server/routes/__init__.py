"""The routes, one noun a file. Adding one: a new file, and one line in `ROUTERS`."""

from typing import Final

from fastapi import APIRouter

from server.routes import boundaries, chunks, embeddings, health, info, metrics

ROUTERS: Final[tuple[APIRouter, ...]] = (
    chunks.router,
    boundaries.router,
    embeddings.router,
    info.router,
    health.router,
    metrics.router,
)

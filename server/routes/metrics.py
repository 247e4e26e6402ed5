"""GET /metrics, for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from server.auth import DOCUMENTED
from server.errors import NATIVE
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["service"], dependencies=[Depends(DOCUMENTED)])


@router.get("/metrics", responses=error_responses(NATIVE, 401), response_class=Response, summary="Metrics")
async def metrics(service: Annotated[Service, Depends(service_of)]) -> Response:
    """Answer counters, gauges and histograms in Prometheus's text format."""
    return Response(service.metrics.exposed(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

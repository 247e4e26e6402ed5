"""GET /healthz and /readyz, for whoever runs the service."""

from typing import Annotated

from fastapi import APIRouter, Depends

from server.answers import JsonAnswer
from server.errors import NATIVE
from server.schemas.errors import error_responses
from server.schemas.info import Health
from server.service import Service, service_of

router = APIRouter(tags=["service"])


@router.get("/healthz", response_model=Health, summary="Alive")
async def healthz() -> JsonAnswer:
    """Answer as long as the process does."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=error_responses(NATIVE, 503), summary="Ready")
async def readyz(service: Annotated[Service, Depends(service_of)]) -> JsonAnswer:
    """Answer 200 once the device has read something, as long as it answers, and until the server is to stop."""
    service.check_ready()
    return JsonAnswer({"status": "ready"})

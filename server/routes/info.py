"""GET /info: the model in use, and the limits of the service."""

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends

import late_chunking
from late_chunking.boundaries.registry import STRATEGIES
from late_chunking.request import MODES
from server.answers import JsonAnswer
from server.auth import DOCUMENTED
from server.errors import NATIVE
from server.schemas.errors import error_responses
from server.schemas.info import InfoAnswer
from server.service import Service, service_of

router = APIRouter(tags=["service"], dependencies=[Depends(DOCUMENTED)])


@router.get("/info", response_model=InfoAnswer, responses=error_responses(NATIVE, 401), summary="Model and limits")
async def info(service: Annotated[Service, Depends(service_of)]) -> JsonAnswer:
    """Answer what was found in the model's folder, how it is run, and the limits of a request."""
    settings, model = service.settings, service.info
    return JsonAnswer(
        {
            "model_id": settings.model_id,
            "model_sha": model.revision,
            "model_dtype": model.dtype,
            # How vectors are pooled here; `pooling` below is what the model's folder says.
            "model_type": {"embedding": {"pooling": "mean"}},
            "max_concurrent_requests": settings.max_concurrent_requests,
            "max_input_length": model.window,
            "max_batch_tokens": service.chunker.batch_tokens,
            "max_client_batch_size": settings.max_client_batch_size,
            "tokenization_workers": settings.tokenization_workers,
            "version": late_chunking.__version__,
            "served_model_name": settings.model_name,
            "payload_limit": settings.payload_limit,
            "strategies": sorted(STRATEGIES),
            "modes": MODES,
            **dataclasses.asdict(model),
        }
    )

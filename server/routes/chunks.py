"""POST /v1/chunks: documents in, chunks with vectors out."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from late_chunking import EmbeddedDocument, FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.plans import Plan
from late_chunking.records import chunk_record, document_record
from late_chunking.vectors import shortened
from server.answers import JsonAnswer, encoded, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE, failure
from server.schemas.chunks import ChunksAnswer, ChunksRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/chunks",
    response_model=ChunksAnswer,
    responses=error_responses(NATIVE, 400, 401, 404, 413, 422, 429, 500, 503),
    summary="Chunk and embed documents",
)
async def chunks(request: Request, body: ChunksRequest, service: Annotated[Service, Depends(service_of)]) -> JsonAnswer:
    """Embed each document once, as a whole, and answer a vector for each of its chunks.

    A document that is refused refuses the request, before anything is embedded. One that fails
    on the device takes its place in `data` as an error; if all fail, so does the request.
    """
    service.check_model(body.model)
    service.check_count(len(body.documents), "documents")
    service.check_dimensions(body.dimensions)
    outcomes = await service.embed(request, lambda: _plans(body, service))
    embedded = [outcome for outcome in outcomes if isinstance(outcome, EmbeddedDocument)]
    if not embedded and isinstance(outcomes[0], FailedDocument):
        raise outcomes[0].error
    return JsonAnswer(
        {
            "object": "list",
            "model": service.settings.model_name,
            "usage": {"total_tokens": sum(document.token_count for document in embedded)},
            "data": [_entry(outcome, body) for outcome in outcomes],
        }
    )


def _plans(body: ChunksRequest, service: Service) -> list[Plan]:
    """Plan all documents of a request.

    Raises:
        InvalidInput: naming the document, if one is to blame.
    """
    request = request_of(body.chunking, mode=body.mode, input_type=body.input_type, on_overflow=body.on_overflow)
    plans: list[Plan] = []
    pooled = 0
    for index, document in enumerate(documents_of(body.documents)):
        plans.append(service.chunker.planner.plan(document, request, index))
        pooled += int(plans[-1].pooled.sum())
        service.check_pooled(pooled)
    return plans


def _entry(outcome: Outcome, body: ChunksRequest) -> dict[str, Any]:
    """Write what became of a document."""
    if isinstance(outcome, FailedDocument):
        return failure(outcome)
    vectors = shortened(outcome.vectors, body.dimensions)  # [C, D]
    chunks = [
        {**chunk_record(chunk, include_text=body.include_text), "embedding": encoded(vector, body.encoding_format)}
        for chunk, vector in zip(outcome.chunks, vectors, strict=True)
    ]
    return written(
        document_record(outcome.document, outcome.index, chunks, tokens=outcome.token_count, windows=outcome.windows)
    )

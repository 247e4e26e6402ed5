"""POST /v1/chunks: documents in, chunks with vectors out."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from late_chunking import EmbeddedDocument, FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.records import chunk_record, document_record
from late_chunking.vectors import shortened
from server.answers import JsonAnswer, encoded, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE, failure, raise_if_all_failed
from server.schemas.chunks import ChunksAnswer, ChunksRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/chunks",
    response_model=ChunksAnswer,
    responses=error_responses(NATIVE, 400, 401, 404, 413, 422, 429, 500, 502, 503),
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
    asked = request_of(
        body.chunking,
        mode=body.mode,
        blend_weight=body.blend_weight,
        window_context=body.window_context,
        context=service.check_writer() if body.written_context else None,
        input_type=body.input_type,
        on_overflow=body.on_overflow,
    )
    outcomes = await service.embed(request, lambda: service.plan(documents_of(body.documents), asked))
    raise_if_all_failed(outcomes)
    embedded = [outcome for outcome in outcomes if isinstance(outcome, EmbeddedDocument)]
    return JsonAnswer(
        {
            "object": "list",
            "model": service.settings.model_name,
            "usage": {"total_tokens": sum(document.token_count for document in embedded)},
            "data": [_entry(outcome, body) for outcome in outcomes],
        }
    )


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

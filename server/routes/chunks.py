"""POST /v1/chunks: documents in, chunks with vectors out."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from late_chunking import EmbeddedDocument, FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.errors import InvalidParameter
from late_chunking.records import chunk_record, document_record
from late_chunking.vectors import shortened
from server.answers import JsonAnswer, encoded, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE, failure, raise_if_all_failed
from server.offsets import CODEPOINT, Offsets
from server.schemas.chunks import ChunksAnswer, ChunksRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of
from server.streams import ARROW, NDJSON, Batches, Lines, Streamed, Writer, wanted

# A line is an entry of `data` in an ordinary answer.
LINE_SCHEMA: Final = {
    "anyOf": [{"$ref": "#/components/schemas/DocumentOut"}, {"$ref": "#/components/schemas/FailedOut"}]
}

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/chunks",
    response_model=ChunksAnswer,
    responses={
        200: {"content": {NDJSON: {"schema": LINE_SCHEMA}, ARROW: {"schema": {"type": "string", "format": "binary"}}}},
        **error_responses(NATIVE, 400, 401, 404, 408, 413, 415, 422, 429, 500, 502, 503),
    },
    summary="Chunk and embed documents",
)
async def chunks(request: Request, body: ChunksRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Embed each document once, as a whole, and answer a vector for each of its chunks.

    A document that is refused refuses the request, before anything is embedded. One that fails
    on the device takes its place in `data` as an error; if all fail, so does the request.

    With `Accept: application/x-ndjson`, each document is sent as a line as soon as it is done; with
    `Accept: application/vnd.apache.arrow.stream`, as a record batch with a row a chunk.
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
    writer = _writer(wanted(request.headers.get("accept", "")), body, service)
    async with AsyncExitStack() as stack:
        work = await stack.enter_async_context(service.work(request, writes=body.written_context))
        plans = await work.plan(lambda: service.plans(documents_of(body.documents, body.offset_unit), asked))
        work.submit(plans, urgent=body.input_type == "query")
        if writer is not None:
            stack.pop_all()  # the stream ends the work
            return Streamed(work, writer)
        outcomes = await work.all_outcomes()
        raise_if_all_failed(outcomes)
        return await work.write(lambda: _answer(outcomes, body, service.settings.model_name))


def _writer(kind: str | None, body: ChunksRequest, service: Service) -> Writer | None:
    """Make what writes the stream that is asked for, if one is.

    Raises:
        InvalidParameter: if it cannot say what is asked for.
    """
    if kind == NDJSON:
        return Lines(lambda outcome: _entry(outcome, body))
    if kind is None:
        return None
    if body.offset_unit != CODEPOINT or body.encoding_format != "float":
        raise InvalidParameter("an Arrow stream has offset_unit 'codepoint' and encoding_format 'float'")
    dimensions = body.dimensions or service.info.dimensions
    return Batches(service.settings.model_name, dimensions, include_text=body.include_text)


def _answer(outcomes: Sequence[Outcome], body: ChunksRequest, model: str) -> JsonAnswer:
    """Write an answer that is sent as a whole."""
    embedded = [outcome for outcome in outcomes if isinstance(outcome, EmbeddedDocument)]
    return JsonAnswer(
        {
            "object": "list",
            "model": model,
            "usage": {"total_tokens": sum(document.token_count for document in embedded)},
            "data": [_entry(outcome, body) for outcome in outcomes],
        }
    )


def _entry(outcome: Outcome, body: ChunksRequest) -> dict[str, Any]:
    """Write what became of a document."""
    if isinstance(outcome, FailedDocument):
        return failure(outcome)
    vectors = shortened(outcome.vectors, body.dimensions)  # [C, D]
    offsets = Offsets.of(outcome.document.text, body.offset_unit)
    chunks = [
        {
            **offsets.outward(chunk_record(chunk, include_text=body.include_text)),
            "embedding": encoded(vector, body.encoding_format),
        }
        for chunk, vector in zip(outcome.chunks, vectors, strict=True)
    ]
    return written(
        document_record(outcome.document, outcome.index, chunks, tokens=outcome.token_count, windows=outcome.windows)
    )

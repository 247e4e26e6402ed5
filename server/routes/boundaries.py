"""POST /v1/boundaries: documents in, spans out; the encoder is used where the cuts follow the meaning."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from late_chunking import Chunk, Document, EmbeddedDocument, FailedDocument
from late_chunking.boundaries import needs_vectors
from late_chunking.embedder import Outcome
from late_chunking.planning import strategies_of
from late_chunking.plans import Plan
from late_chunking.records import chunk_record, document_record
from server.answers import JsonAnswer, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE, failure
from server.schemas.boundaries import BoundariesAnswer, BoundariesRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/boundaries",
    response_model=BoundariesAnswer,
    responses=error_responses(NATIVE, 400, 401, 404, 413, 422, 429, 500, 503),
    summary="Chunk documents",
)
async def boundaries(
    request: Request, body: BoundariesRequest, service: Annotated[Service, Depends(service_of)]
) -> JsonAnswer:
    """Answer where documents would be cut, with sizes in the model's tokens.

    Only strategies that cut by meaning use the encoder; a document that fails there takes its
    place in `data` as an error, and if all fail, so does the request.
    """
    service.check_model(body.model)
    service.check_count(len(body.documents), "documents")
    prepared = await service.prepare(lambda: _prepared(body, service))
    plans = [each for _, each in prepared if not isinstance(each, tuple)]
    outcomes = iter(await service.embed(request, lambda: plans) if plans else ())
    cut = [(document, each if isinstance(each, tuple) else next(outcomes)) for document, each in prepared]
    if all(isinstance(each, FailedDocument) for _, each in cut) and isinstance(cut[0][1], FailedDocument):
        raise cut[0][1].error
    data = [_entry(document, index, each, body) for index, (document, each) in enumerate(cut)]
    return JsonAnswer({"object": "list", "model": service.settings.model_name, "data": data})


def _prepared(body: BoundariesRequest, service: Service) -> list[tuple[Document, tuple[Chunk, ...] | Plan]]:
    """Cut the documents of a request, or plan to read those that must be.

    Raises:
        InvalidInput: naming the document, if one is to blame.
    """
    request = request_of(body.chunking, input_type=body.input_type)
    planner = service.chunker.planner
    prepared: list[tuple[Document, tuple[Chunk, ...] | Plan]] = []
    for index, document in enumerate(documents_of(body.documents)):
        waits = any(map(needs_vectors, strategies_of(document, request)))
        prepared.append((document, (planner.plan if waits else planner.chunk)(document, request, index)))
    return prepared


def _entry(document: Document, index: int, cut: tuple[Chunk, ...] | Outcome, body: BoundariesRequest) -> dict[str, Any]:
    """Write a document's chunks, or why there are none."""
    if isinstance(cut, FailedDocument):
        return failure(cut)
    chunks = cut.chunks if isinstance(cut, EmbeddedDocument) else cut
    records = [chunk_record(chunk, include_text=body.include_text) for chunk in chunks]
    return written(document_record(document, index, records))

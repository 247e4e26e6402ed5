"""POST /v1/boundaries: documents in, spans out; the encoder is used where the cuts follow the meaning."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from late_chunking import FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.plans import DocumentPlan, Draft
from late_chunking.records import chunk_record, document_record
from server.answers import JsonAnswer, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE, failure, raise_if_all_failed
from server.offsets import Offsets
from server.schemas.boundaries import BoundariesAnswer, BoundariesRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/boundaries",
    response_model=BoundariesAnswer,
    responses=error_responses(NATIVE, 400, 401, 404, 408, 413, 415, 422, 429, 500, 503),
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
    asked = request_of(body.chunking, input_type=body.input_type)
    async with service.work(request) as work:
        plans = await work.plan(lambda: service.plans(documents_of(body.documents, body.offset_unit), asked))
        if drafts := [plan for plan in plans if isinstance(plan, Draft)]:
            work.submit(drafts)
        outcomes = iter(await work.all_outcomes())
        cut = [next(outcomes) if isinstance(plan, Draft) else plan for plan in plans]
        raise_if_all_failed(cut)
        return await work.write(lambda: _answer(cut, body, service.settings.model_name))


def _answer(cut: Sequence[DocumentPlan | Outcome], body: BoundariesRequest, model: str) -> JsonAnswer:
    """Write the answer."""
    return JsonAnswer({"object": "list", "model": model, "data": [_entry(document, body) for document in cut]})


def _entry(cut: DocumentPlan | Outcome, body: BoundariesRequest) -> dict[str, Any]:
    """Write a document's chunks, or why there are none."""
    if isinstance(cut, FailedDocument):
        return failure(cut)
    offsets = Offsets.of(cut.document.text, body.offset_unit)
    records = [offsets.outward(chunk_record(chunk, include_text=body.include_text)) for chunk in cut.chunks]
    return written(document_record(cut.document, cut.index, records))

"""POST /v1/boundaries: documents in, spans out; nothing is embedded."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from late_chunking.records import chunk_record, document_record
from server.answers import JsonAnswer, written
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.documents import documents_of, request_of
from server.errors import NATIVE
from server.schemas.boundaries import BoundariesAnswer, BoundariesRequest
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["chunks"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/boundaries",
    response_model=BoundariesAnswer,
    responses=error_responses(NATIVE, 400, 401, 404, 413, 422, 429),
    summary="Chunk documents",
)
async def boundaries(body: BoundariesRequest, service: Annotated[Service, Depends(service_of)]) -> JsonAnswer:
    """Answer where documents would be cut, with sizes in the model's tokens."""
    service.check_model(body.model)
    service.check_count(len(body.documents), "documents")
    data = await service.prepare(lambda: _data(body, service))
    return JsonAnswer({"object": "list", "model": service.settings.model_name, "data": data})


def _data(body: BoundariesRequest, service: Service) -> list[dict[str, Any]]:
    """Cut all documents of a request.

    Raises:
        InvalidInput: naming the document, if one is to blame.
    """
    request = request_of(body.chunking, input_type=body.input_type)
    data = []
    for index, document in enumerate(documents_of(body.documents)):
        chunks = service.chunker.planner.chunk(document, request, index)
        records = [chunk_record(chunk, include_text=body.include_text) for chunk in chunks]
        data.append(written(document_record(document, index, records)))
    return data

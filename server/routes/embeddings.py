"""OpenAI's shape: POST /v1/embeddings and GET /v1/models."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from late_chunking import EmbeddedDocument, FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.vectors import shortened
from server.answers import JsonAnswer, encoded
from server.auth import DOCUMENTED
from server.bodies import JsonRoute
from server.errors import OPENAI
from server.schemas.embeddings import EmbeddingsAnswer, EmbeddingsRequest, ModelsAnswer
from server.schemas.errors import error_responses
from server.service import Service, service_of

router = APIRouter(tags=["openai"], route_class=JsonRoute, dependencies=[Depends(DOCUMENTED)])


@router.post(
    "/v1/embeddings",
    response_model=EmbeddingsAnswer,
    responses=error_responses(OPENAI, 400, 401, 404, 408, 413, 415, 429, 500, 503),
    summary="Embed texts",
)
async def embeddings(
    request: Request, body: EmbeddingsRequest, service: Annotated[Service, Depends(service_of)]
) -> JsonAnswer:
    """Answer one vector a text, as the model's ordinary pooling makes it."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    service.check_model(body.model)
    service.check_count(len(texts), "input")
    service.check_dimensions(body.dimensions)
    async with service.work(request) as work:
        plans = await work.plan(lambda: service.chunker.plan_texts(texts, input_type=body.input_type))
        work.submit(plans, urgent=body.input_type == "query")
        embedded = [_embedded(outcome) for outcome in await work.all_outcomes()]
        return await work.write(lambda: _answer(embedded, body, service.settings.model_name))


def _answer(embedded: Sequence[EmbeddedDocument], body: EmbeddingsRequest, model: str) -> JsonAnswer:
    """Write the answer."""
    tokens = sum(text.token_count for text in embedded)
    vectors = [shortened(text.vectors, body.dimensions)[0] for text in embedded]  # N × [D]
    return JsonAnswer(
        {
            "object": "list",
            "model": model,
            "data": [
                {"object": "embedding", "index": index, "embedding": encoded(vector, body.encoding_format)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


@router.get("/v1/models", response_model=ModelsAnswer, responses=error_responses(OPENAI, 401), summary="List models")
async def models(service: Annotated[Service, Depends(service_of)]) -> JsonAnswer:
    """Answer the one model that is served."""
    model = {
        "id": service.settings.model_name,
        "object": "model",
        "created": service.started,
        "owned_by": "late-chunking",
    }
    return JsonAnswer({"object": "list", "data": [model]})


def _embedded(outcome: Outcome) -> EmbeddedDocument:
    """Give what was embedded: this shape has no place for one text's error."""
    if isinstance(outcome, FailedDocument):
        raise outcome.error
    return outcome

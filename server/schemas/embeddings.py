"""OpenAI's shape: texts in, one vector each out."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic.config import JsonDict, JsonValue
from pydantic_core import PydanticCustomError

from server.schemas.fields import Dimensions, Embedding, EncodingFormat, InputType, RequestBody, one_or_several

REQUEST_EXAMPLES: Final[list[JsonValue]] = [
    {"model": "embedded", "input": ["population of Berlin", "capital of Germany"], "input_type": "query"},
    {"model": "embedded", "input": "Berlin is the capital of Germany.", "encoding_format": "base64"},
]
ANSWER_EXAMPLE: Final[JsonDict] = {
    "object": "list",
    "model": "embedded",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.0871, -0.0132, 0.0046]}],
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}


def _refuse_token_ids(value: object) -> object:
    """Say why token ids are refused, rather than that they are no strings."""
    first = value[0] if isinstance(value, list) and value else None
    inner = first[0] if isinstance(first, list) and first else first
    if isinstance(inner, int) and not isinstance(inner, bool):
        raise PydanticCustomError(
            "token_ids",
            "token ids are refused, since those of another model's tokenizer would give wrong vectors without "
            "notice; send the text",
        )
    return value


Input = Annotated[
    Annotated[str, Tag("one")] | Annotated[list[str], Tag("several")],
    Discriminator(one_or_several),
    BeforeValidator(_refuse_token_ids),
]


class EmbeddingsRequest(RequestBody):
    """Texts to embed, each as a whole."""

    model_config = ConfigDict(json_schema_extra={"examples": REQUEST_EXAMPLES})

    input: Input
    model: str = Field(description="The model that is served.")
    encoding_format: EncodingFormat = "float"
    dimensions: Dimensions = None
    user: str | None = Field(default=None, description="Accepted, and not used.")
    input_type: InputType | None = Field(
        default=None, description="Which of the model's prompts to use; by default none."
    )


class EmbeddingOut(BaseModel):
    """One text's vector."""

    object: Literal["embedding"]
    index: int
    embedding: Embedding


class EmbeddingsUsage(BaseModel):
    """What was read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """A vector a text, in order."""

    model_config = ConfigDict(json_schema_extra={"examples": [ANSWER_EXAMPLE]})

    object: Literal["list"]
    model: str
    data: list[EmbeddingOut]
    usage: EmbeddingsUsage


class ModelOut(BaseModel):
    """The model that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsAnswer(BaseModel):
    """The models that are served: one."""

    object: Literal["list"]
    data: list[ModelOut]

"""Documents in, chunks with their vectors out."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.config import JsonDict, JsonValue
from pydantic_core import PydanticCustomError

from late_chunking.request import DEFAULT_BLEND_WEIGHT
from server.offsets import OffsetUnit
from server.schemas.fields import Dimensions, Embedding, EncodingFormat, InputType, RequestBody, one_or_several

Mode: TypeAlias = Literal["late", "naive", "blend", "contextual"]
OnOverflow: TypeAlias = Literal["window", "error"]

_TEXT: Final = "Berlin is the capital of Germany. The city has 3.8 million inhabitants."
REQUEST_EXAMPLES: Final[list[JsonValue]] = [
    {
        "documents": [{"id": "berlin", "text": _TEXT, "title": "Berlin"}],
        "chunking": {"strategy": "sentences"},
    },
    {"documents": [{"id": "berlin", "text": _TEXT, "spans": [[0, 33], [34, 71]]}], "encoding_format": "base64"},
]
ANSWER_EXAMPLE: Final[JsonDict] = {
    "object": "list",
    "model": "embedded",
    "usage": {"total_tokens": 17},
    "data": [
        {
            "object": "document",
            "index": 0,
            "id": "berlin",
            "tokens": 17,
            "windows": 1,
            "metadata": {},
            "chunks": [
                {
                    "object": "chunk",
                    "index": 0,
                    "id": "8a2ff4b41c4e3d0f8a2ff4b41c4e3d0f",
                    "document_id": "berlin",
                    "strategy": "sentences",
                    "span": [0, 33],
                    "token_span": [0, 7],
                    "token_count": 7,
                    "level": 0,
                    "kind": "text",
                    "heading_path": [],
                    "parent": None,
                    "previous": None,
                    "next": "1c0b8e6a55d24c7f1c0b8e6a55d24c7f",
                    "context": None,
                    "page": None,
                    "table_header": None,
                    "text": "Berlin is the capital of Germany.",
                    "content": None,
                    "embedding": [0.0871, -0.0132, 0.0046],
                }
            ],
        }
    ],
}


class ChunkingOptions(BaseModel):
    """A strategy by name, and its own options beside it, such as `size` and `overlap`."""

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        frozen=True,
        json_schema_extra={"examples": [{"strategy": "recursive", "size": 256}]},
    )

    strategy: str

    @property
    def options(self) -> dict[str, Any]:
        """The options."""
        return dict(self.model_extra or {})


Chunking = Annotated[
    Annotated[ChunkingOptions, Tag("one")] | Annotated[list[ChunkingOptions], Tag("several")],
    Discriminator(one_or_several),
]


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what could be read but not be written into the answer again."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise PydanticCustomError("too_deep", "metadata is nested deeper than 254 levels") from None
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_writable)]
SpanEdges = Annotated[
    list[int], Field(min_length=2, max_length=2, description="`[start, end)`, in units of `offset_unit`.")
]


class DocumentIn(RequestBody):
    """A document; with neither `spans` nor `chunking`, the request's `chunking` holds."""

    text: str
    id: str = Field(default="", description="By default derived from the text.")
    title: str | None = None
    spans: list[SpanEdges] | None = Field(default=None, description="Boundaries of your own.")
    chunking: Chunking | None = Field(default=None, description="A strategy, or several, for this document.")
    context: str | list[str] | None = Field(
        default=None, description="For mode `contextual`: what to put before its chunks, one text or one for each."
    )
    metadata: Metadata = Field(default={}, description="Anything; it comes back with the document.")


class ChunksRequest(RequestBody):
    """Documents to chunk and embed."""

    model_config = ConfigDict(json_schema_extra={"examples": REQUEST_EXAMPLES})

    documents: list[DocumentIn]
    model: str | None = Field(default=None, description="If given, it must be the model that is served.")
    chunking: Chunking | None = Field(
        default=None, description="A strategy, or several; by default `recursive` with the model's default size."
    )
    mode: Mode = Field(
        default="late",
        description="`naive` embeds every chunk alone, `blend` weighs both, `contextual` embeds every chunk alone "
        "behind a header: title, headings, the document's `context`.",
    )
    blend_weight: Annotated[float, Field(ge=0, le=1)] = Field(
        default=DEFAULT_BLEND_WEIGHT, description="In mode `blend`, the weight of the late vector."
    )
    window_context: bool = Field(
        default=False, description="Whether later windows of a document begin with its title and headings."
    )
    written_context: bool = Field(
        default=False,
        description="In mode `contextual`, let the language model that the server is set up with write the context "
        "of each chunk, instead of the document's own.",
    )
    input_type: InputType | None = Field(default="document", description="Which of the model's prompts to use.")
    dimensions: Dimensions = None
    encoding_format: EncodingFormat = "float"
    output_dtype: Literal["float"] = "float"
    offset_unit: OffsetUnit = Field(
        default="codepoint",
        description="What spans count, in the request and in the answer: `utf16` units are JavaScript's.",
    )
    include_text: bool = Field(default=True, description="Without it, `text` and `content` are null.")
    on_overflow: OnOverflow = Field(
        default="window", description="Read a document beyond the model's window in windows, or refuse it."
    )


class ChunkRecord(BaseModel):
    """A chunk."""

    object: Literal["chunk"]
    index: int
    id: str = Field(description="Stable: of the document's id, the span and the settings.")
    document_id: str
    strategy: str
    span: list[int]
    token_span: list[int]
    token_count: int
    level: int
    kind: str
    heading_path: list[str]
    parent: str | None = Field(description="The id of the chunk around it, in the level above.")
    previous: str | None = Field(description="The id of the chunk before it, in its level.")
    next: str | None = Field(description="The id of the chunk after it, in its level.")
    context: list[int] | None = Field(description="What to hand to a generator in its place, if the strategy says so.")
    page: int | None
    table_header: list[int] | None
    text: str | None
    content: str | None = Field(description="What was read, where that differs from the text.")


class ChunkOut(ChunkRecord):
    """A chunk and its vector."""

    embedding: Embedding


class DocumentOut(BaseModel):
    """A document's chunks, in the order of its strategies, then of the text."""

    object: Literal["document"]
    index: int
    id: str
    tokens: int
    windows: int = Field(description="How many sequences the encoder read for it.")
    metadata: dict[str, Any]
    chunks: list[ChunkOut]


class FailedOut(BaseModel):
    """Takes the place of a document that failed on the device."""

    object: Literal["error"]
    index: int
    id: str
    error: str
    error_type: str


class Usage(BaseModel):
    """What was read."""

    total_tokens: int


class ChunksAnswer(BaseModel):
    """An entry a document, in order."""

    model_config = ConfigDict(json_schema_extra={"examples": [ANSWER_EXAMPLE]})

    object: Literal["list"]
    model: str
    usage: Usage
    data: list[DocumentOut | FailedOut]

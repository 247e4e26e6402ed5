"""Documents in, spans out."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from server.offsets import OffsetUnit
from server.schemas.chunks import REQUEST_EXAMPLES, Chunking, ChunkRecord, DocumentIn, FailedOut
from server.schemas.fields import InputType, RequestBody


class BoundariesRequest(RequestBody):
    """Documents to chunk."""

    model_config = ConfigDict(json_schema_extra={"examples": REQUEST_EXAMPLES[:1]})

    documents: list[DocumentIn]
    model: str | None = Field(default=None, description="If given, it must be the model that is served.")
    chunking: Chunking | None = Field(
        default=None, description="A strategy, or several; by default `recursive` with the model's default size."
    )
    offset_unit: OffsetUnit = Field(
        default="codepoint", description="What spans count: `utf16` units are JavaScript's."
    )
    input_type: InputType | None = Field(
        default="document", description="Which prompt would go before the text: its last token may join the first."
    )
    include_text: bool = Field(default=True, description="Without it, `text` and `content` are null.")


class BoundariesOut(BaseModel):
    """A document's chunks."""

    object: Literal["document"]
    index: int
    id: str
    metadata: dict[str, Any]
    chunks: list[ChunkRecord]


class BoundariesAnswer(BaseModel):
    """An entry a document, in order."""

    object: Literal["list"]
    model: str
    data: list[BoundariesOut | FailedOut]

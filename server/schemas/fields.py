"""What several bodies have in common."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

InputType: TypeAlias = Literal["query", "document"]
EncodingFormat: TypeAlias = Literal["float", "base64"]

ALTERNATIVES: Final = ("one", "several")
Dimensions = Annotated[
    int | None, Field(description="Cut the vectors to their first dimensions and normalise them again.")
]
Embedding = Annotated[
    list[float] | str, Field(description="Numbers, or with `base64` their little-endian float32 bytes.")
]


class RequestBody(BaseModel):
    """Part of a request: unknown fields are errors, and nothing is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def one_or_several(value: object) -> str:
    """Tell which alternative of ``X | list[X]`` a value is meant as, so that errors speak of that one only."""
    return ALTERNATIVES[isinstance(value, list)]

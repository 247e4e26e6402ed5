"""Answers as JSON, with vectors written straight from numpy's memory."""

import base64
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
from starlette.responses import Response

from late_chunking.records import Record

BASE64: Final = "base64"

Vector = npt.NDArray[np.float32]


class JsonAnswer(Response):
    """A JSON body, which may hold numpy arrays."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - any JSON value
        """Serialise it."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def encoded(vector: Vector, encoding_format: str) -> Vector | str:
    """Give a vector, float32 [D], as an answer carries it: as it is, or its little-endian bytes in base64."""
    if encoding_format != BASE64:
        return np.ascontiguousarray(vector)
    return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode("ascii")


def written(record: Record) -> Record:
    """Write a document's metadata ahead, so that its depth does not add to the answer's."""
    return {**record, "metadata": orjson.Fragment(orjson.dumps(record["metadata"]))}

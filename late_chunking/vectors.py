"""What is done to finished vectors: normalising and shortening. Knows nothing of tensors."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from late_chunking.errors import InvalidParameter

Vectors: TypeAlias = npt.NDArray[np.float32]


def normalized(vectors: Vectors) -> Vectors:
    """Bring each row of [C, D] to length 1; a row of zeros stays so."""
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)  # [C, 1]
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)


def blended(late: Vectors, naive: Vectors, weight: float, *, normalize: bool = True) -> Vectors:
    """Weigh the late and the naive vectors of chunks, [C, D] each, both brought to length 1 before.

    Args:
        late: of the whole document's pass.
        naive: of each chunk alone.
        weight: of the late ones, from 0 to 1.
        normalize: whether the sums are brought to length 1.
    """
    sums = (weight * normalized(late) + (1 - weight) * normalized(naive)).astype(np.float32, copy=False)
    return normalized(sums) if normalize else sums


def shortened(vectors: Vectors, dimensions: int | None) -> Vectors:
    """Cut vectors to their first dimensions and normalise again, as Matryoshka models allow.

    Raises:
        InvalidParameter: if there are not so many dimensions.
    """
    if dimensions is None:
        return vectors
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or not 1 <= dimensions <= vectors.shape[1]:
        raise InvalidParameter(f"dimensions must be an integer from 1 to {vectors.shape[1]}, got {dimensions!r}")
    return normalized(vectors[:, :dimensions])

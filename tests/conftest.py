"""What tests share: the embedded model, loaded once."""

import pytest

from late_chunking import LateChunker


@pytest.fixture(scope="session")
def embedded() -> LateChunker:
    """The embedded model on the CPU."""
    return LateChunker("embedded", device="cpu")

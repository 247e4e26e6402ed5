"""What tests share: models, loaded once."""

import pytest
from hypothesis import settings

from late_chunking import LateChunker
from tests.models import save_folder

# How long an example takes says nothing of its being right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def embedded() -> LateChunker:
    """The embedded model on the CPU."""
    return LateChunker("embedded", device="cpu")


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> LateChunker:
    """A small random ModernBERT whose tokens begin with their space, and whose prompt joins the text."""
    folder = save_folder(
        tmp_path_factory.mktemp("byte"),
        window=128,
        prompts={"query": "search_query: ", "document": "search_document: "},
    )
    return LateChunker(str(folder), device="cpu")


@pytest.fixture(scope="session", params=["embedded", "byte_level"])
def chunker(request: pytest.FixtureRequest) -> LateChunker:
    """Each model in turn."""
    found: LateChunker = request.getfixturevalue(request.param)
    return found

"""Tokens: their places, special-token strings, and threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from late_chunking import LateChunker
from late_chunking.encoding.tokens import Tokenizer
from tests.models import byte_level_tokenizer
from tests.text import nasty_text


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A byte-level tokenizer, saved and loaded."""
    path = tmp_path_factory.mktemp("tokenizer")
    byte_level_tokenizer().save_pretrained(path)
    return Tokenizer.load(path)


@pytest.fixture(scope="module", params=["word_piece", "byte_level"])
def tokenizer(request: pytest.FixtureRequest, embedded: LateChunker) -> Tokenizer:
    """Each tokenizer in turn."""
    if request.param == "word_piece":
        return embedded.planner.tokenizer
    found: Tokenizer = request.getfixturevalue("byte_level")
    return found


@given(text=nasty_text)
def test_anchors_are_visible_and_in_order_whatever_the_prompt(tokenizer: Tokenizer, text: str) -> None:
    for prompt in ("", "search_document: ", "query:"):
        tokens = tokenizer.tokenize(text, prompt)
        assert len(tokens.ids) == len(tokens.anchors)
        assert (np.diff(tokens.anchors) >= 0).all()
        assert ((tokens.anchors >= 0) & (tokens.anchors <= len(text))).all()
        joined = tokenizer.backend.encode(prompt + text, add_special_tokens=False).ids
        assert [*tokens.prompt_ids, *tokens.ids] == joined
        assert text[: tokens.first_visible].strip() == text[tokens.visible_end :].strip() == ""
        assert tokens.first_visible == len(text) or not text[tokens.first_visible].isspace()


def test_a_token_that_joins_the_prompt_to_the_text_is_the_texts(byte_level: Tokenizer) -> None:
    tokens = byte_level.tokenize("Salz", "prompt: ")
    assert tokens.anchors[0] == 0
    assert byte_level.backend.decode([tokens.ids[0]]).startswith(" ")


def test_a_word_begins_at_its_first_letter_though_its_token_begins_at_the_space(byte_level: Tokenizer) -> None:
    text = "The  ferry\n leaves"
    tokens = byte_level.tokenize(text)
    visible = [anchor for anchor in tokens.anchors.tolist() if not text[anchor].isspace()]
    assert {0, 5, 12} <= set(visible)


@pytest.mark.parametrize("text", ["[SEP]", "<|endoftext|>", "a [CLS] b", "[MASK]", "</s>", "[PAD]"])
def test_text_that_looks_like_a_special_token_is_text(tokenizer: Tokenizer, text: str) -> None:
    special = {*tokenizer.leading, *tokenizer.trailing, tokenizer.backend.token_to_id("[MASK]")}
    tokens = tokenizer.tokenize(text)
    assert not special & set(tokens.ids.tolist())
    assert len(tokens.ids) > 1
    (again,) = tokenizer.tokenize_many([text])
    np.testing.assert_array_equal(tokens.ids, again.ids)


def test_nothing_is_cut_off_or_padded(tokenizer: Tokenizer) -> None:
    lengths = [len(tokens.ids) for tokens in tokenizer.tokenize_many(["word " * 5000, "word"])]
    assert lengths[0] >= 5000
    assert lengths[1] == len(tokenizer.tokenize("word").ids)


def test_special_tokens_are_known_by_position(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.backend.encode("word", add_special_tokens=True)
    assert (encoding.ids[0],) == tokenizer.leading
    assert (encoding.ids[-1],) == tokenizer.trailing
    assert tokenizer.special_count == 2


def test_threads_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    texts = [f"{'word ' * number}🦊 [SEP] {number}" for number in range(200)]
    expected = [tokenizer.tokenize(text).ids.tolist() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = list(pool.map(lambda text: tokenizer.tokenize(text).ids.tolist(), texts))
            assert found == expected


def test_lowercase_folders_read_lower_case(tmp_path: Path) -> None:
    byte_level_tokenizer().save_pretrained(tmp_path)
    lowered, plain = Tokenizer.load(tmp_path, lowercase=True), Tokenizer.load(tmp_path)
    assert lowered.tokenize("The FERRY").ids.tolist() == plain.tokenize("the ferry").ids.tolist()
    assert plain.tokenize("The FERRY").ids.tolist() != plain.tokenize("the ferry").ids.tolist()

"""Sizes in tokens of other models, and by any function."""

from itertools import pairwise

import pytest
import regex
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from late_chunking import LateChunker, errors
from late_chunking.boundaries import Nested, Paragraphs, Recursive, Semantic, SourceText, Turns, split
from late_chunking.boundaries.units import ruler_of
from late_chunking.documents import Span
from tests.sources import byte_source
from tests.text import nasty_text

BYTES = {bytes([value]): value for value in range(256)}
ENCODING = tiktoken.Encoding(
    "small",
    pat_str=r" ?\p{L}+| ?[^\s\p{L}]+|\s+",
    mergeable_ranks=BYTES | {b" t": 256, b"th": 257, b" th": 258, b"er": 259, "é".encode(): 260},
    special_tokens={"<|endoftext|>": 261},
)


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def uneven(text: str) -> int:
    """Gives less for some texts than for parts of them."""
    return len(text) if len(text) % 7 else len(text) // 3


def counted(text: str) -> int:
    return len(ENCODING.encode_ordinary(text))


@given(nasty_text, st.integers(1, 20), st.integers(0, 19), st.sampled_from([utf16, counted, uneven]))
def test_a_functions_limit_and_overlap_hold(text: str, size: int, overlap: int, unit) -> None:
    overlap = min(overlap, size - 1)
    for strategy in (Recursive(size, overlap, unit), Paragraphs(size, overlap, unit), Turns(size, overlap, unit)):
        spans = [boundary.span for boundary in split(byte_source(text), strategy)]
        for span in spans:
            chunk = text[slice(*span)]
            assert unit(chunk) <= size or len(regex.findall(r"\X", chunk)) == 1
        for before, after in pairwise(spans):
            assert unit(text[after.start : before.end]) <= overlap


@given(nasty_text, st.integers(1, 20))
def test_a_function_that_counts_characters_is_the_unit_chars(text: str, size: int) -> None:
    source = byte_source(text)
    for kind in (Recursive, Paragraphs, Turns):
        for overlap in (0, size // 2):
            assert split(source, kind(size, overlap, len)) == split(source, kind(size, overlap, "chars"))


@given(nasty_text)
def test_tiktokens_tokens_are_all_counted_once(text: str) -> None:
    source = byte_source(text)
    ruler = ruler_of(source, ENCODING)
    assert ruler.size(Span(0, len(text))) == counted(text)
    cuts = [0, *ruler.cuts.tolist(), len(text)]
    assert sum(ruler.size(Span(low, high)) for low, high in pairwise(cuts) if low < high) == counted(text)


def test_tiktoken_windows_and_special_tokens_as_text() -> None:
    text = "the other the other <|endoftext|> the other"
    source = byte_source(text)
    chunks = [text[slice(*boundary.span)] for boundary in split(source, Recursive(8, unit=ENCODING))]
    assert "".join(chunks).replace(" ", "") == text.replace(" ", "")
    assert all(counted(chunk) <= 8 + 1 for chunk in chunks)  # alone, a first word has no space to be one with


def test_a_part_is_measured_as_the_whole_was() -> None:
    calls = []

    class Counting:
        """Tokenizes as the encoding does, and notes how often."""

        def encode_ordinary(self, text: str) -> list[int]:
            calls.append(len(text))
            return ENCODING.encode_ordinary(text)

        decode_with_offsets = ENCODING.decode_with_offsets

    text = "\n\n".join("the other word goes on and on. And on." for _ in range(20))
    boundaries = split(byte_source(text), Nested("paragraphs", "recursive", 5, Counting()))
    assert len(boundaries) > 40
    assert calls == [len(text)]


@pytest.mark.parametrize("name", ["cl100k_base", "gpt-4o"])
def test_tables_that_cannot_be_had_are_one_clear_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str) -> tiktoken.Encoding:
        raise OSError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(errors.InvalidParameter, match=r"could not download the tables .* TIKTOKEN_CACHE_DIR"):
        split(byte_source("text"), Recursive(5, unit=f"tiktoken:{name}"))


def test_named_encodings_are_tiktokens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: asked.append(name) or ENCODING)
    for name in ("o200k_base", "gpt-4o"):
        source = byte_source("the other word")
        assert split(source, Recursive(2, unit=f"tiktoken:{name}")) == split(source, Recursive(2, unit=ENCODING))
    assert asked == ["o200k_base", "o200k_base"]


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Recursive(5, unit="tiktoken:nothing"), "knows no such encoding or model; it has gpt2"),
        (Recursive(5, unit=lambda text: None), "failed: TypeError"),
        (Recursive(5, unit=lambda text: -1), "must give an integer of at least 0, got -1"),
        (Recursive(5, unit=lambda text: 1 / 0), "failed: ZeroDivisionError"),
        (Semantic(5, unit=lambda text: 0.5, embedder="bag-of-words"), "must give an integer of at least 0, got 0.5"),
    ],
)
def test_what_is_wrong_with_a_unit_is_said(strategy: Recursive, message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        split(byte_source("Some text. And more of it."), strategy)


def test_a_count_beyond_all_bounds_is_too_large() -> None:
    assert len(split(byte_source("Some text."), Recursive(5, unit=lambda text: 10**30))) == 9


def test_time_grows_with_the_length_alone() -> None:
    """A function is asked about texts little longer than a chunk, never about all that is left."""
    asked = 0

    def noting(text: str) -> int:
        nonlocal asked
        asked += len(text)
        return len(text.split())

    for text in ("word " * 2_000, "word. " * 2_000):
        asked = 0
        split(byte_source(text), Recursive(50, unit=noting))
        assert asked < 60 * len(text)


def test_units_reach_the_embedder(embedded: LateChunker) -> None:
    text = "the other word goes on. " * 30
    chunks = embedded.embed(text, strategy="recursive", size=20, unit=ENCODING).chunks
    assert [chunk.span for chunk in chunks] == [
        boundary.span
        for boundary in split(
            SourceText(text, embedded.planner.tokenizer.tokenize(text).anchors, 64), Recursive(20, unit=ENCODING)
        )
    ]
    assert len({chunk.id for chunk in chunks}) == len(chunks)

"""White space and grapheme clusters against the definitions themselves."""

import numpy as np
import regex
from hypothesis import given

from late_chunking.characters import grapheme_breaks, next_where, whitespace
from tests.text import nasty_text


def test_whitespace_is_isspace_for_every_code_point() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert whitespace(everything).tolist() == [character.isspace() for character in everything]


@given(nasty_text)
def test_breaks_are_those_of_the_whole_text(text: str) -> None:
    expected = {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}
    assert set(np.flatnonzero(grapheme_breaks(text)).tolist()) == expected


def test_rows_of_flags_are_pairs_whatever_stands_around_them() -> None:
    around = ["", "a", "é", "\u0301", "\u200d", "\u0600", "👍🏽", "\r\n", "🇩🇪x"]
    for count in range(14):
        for before in around:
            for after in around:
                text = before + "\U0001f1e9" * count + after
                expected = {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}
                assert set(np.flatnonzero(grapheme_breaks(text)).tolist()) == expected, ascii(text)


@given(nasty_text)
def test_neighbours_by_brute_force(text: str) -> None:
    visible = ~whitespace(text)
    following = next_where(visible)
    places = [place for place, character in enumerate(text) if not character.isspace()]
    for position in range(len(text) + 1):
        assert following[position] == next((place for place in places if place >= position), len(text))

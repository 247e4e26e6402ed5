"""Spans in the units that clients count in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from late_chunking.errors import InvalidSpan
from server.offsets import Offsets
from tests.text import nasty_text

TEXT = "Ein Füchslein 🦊 läuft. Es ist schnell."


def units(text: str, unit: str) -> int:
    """How many units a text has, by Python's own codecs."""
    return {"codepoint": len(text), "utf16": len(text.encode("utf-16-le")) // 2, "byte": len(text.encode())}[unit]


@given(nasty_text, st.sampled_from(["codepoint", "utf16", "byte"]), st.data())
def test_there_and_back(text: str, unit: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
    offsets = Offsets.of(text, unit)
    record = offsets.outward({"span": [start, end], "context": None, "table_header": [0, start], "token_span": [1, 2]})
    assert record["span"] == [units(text[:start], unit), units(text[:end], unit)]
    assert record["table_header"] == [0, units(text[:start], unit)]
    assert (record["context"], record["token_span"]) == (None, [1, 2])
    assert offsets.inward([record["span"]]) == [(start, end)]


@pytest.mark.parametrize(
    ("unit", "span", "says"),
    [
        ("utf16", [0, 15], r"span 0: offset 15 in utf16 units lies inside a character"),
        ("byte", [0, 6], "lies inside a character"),
        ("byte", [0, 99], "lies outside the text, which has 43"),
        ("utf16", [-1, 3], "lies outside the text"),
    ],
)
def test_offsets_that_are_none_are_refused(unit: str, span: list[int], says: str) -> None:
    with pytest.raises(InvalidSpan, match=says):
        Offsets.of(TEXT, unit).inward([span])


@pytest.mark.parametrize("unit", ["codepoint", "utf16", "byte"])
def test_requests_and_answers_count_alike(client, unit: str) -> None:
    document = {"text": TEXT, "spans": [[units(TEXT[:4], unit), units(TEXT[:22], unit)]]}
    (own,) = client.post("/v1/chunks", json={"documents": [document], "offset_unit": unit}).json()["data"]
    assert own["chunks"][0]["text"] == TEXT[4:22]
    assert own["chunks"][0]["span"] == document["spans"][0]
    body = {"documents": [{"text": TEXT}], "chunking": {"strategy": "sentence_window"}, "offset_unit": unit}
    (cut,) = client.post("/v1/boundaries", json=body).json()["data"]
    plain = client.post("/v1/chunks", json={**body, "offset_unit": "codepoint"}).json()["data"][0]
    for chunk, same in zip(cut["chunks"], plain["chunks"], strict=True):
        assert chunk["id"] == same["id"]
        for name in ("span", "context"):
            assert chunk[name] == [units(TEXT[:edge], unit) for edge in same[name]]


def test_vectors_do_not_depend_on_the_unit(client) -> None:
    answers = [
        client.post(
            "/v1/chunks",
            json={
                "documents": [{"text": TEXT, "spans": [[0, units(TEXT[:16], unit)]]}],
                "offset_unit": unit,
            },
        ).json()["data"][0]["chunks"][0]["embedding"]
        for unit in ("codepoint", "utf16", "byte")
    ]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])

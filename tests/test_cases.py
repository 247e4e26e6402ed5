"""Shared cases with right answers, where the folder that holds them exists."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from late_chunking import LateChunker, Span
from late_chunking.boundaries import STRATEGIES, Semantic, SourceText, make_strategies, needs_vectors, split
from late_chunking.boundaries.units import ruler_of
from tests.sources import random_vectors

_FILE = Path(__file__).parents[2] / "shared" / "cases" / "boundaries.jsonl"


def _cases() -> list[dict[str, Any]]:
    if not _FILE.exists():
        return []
    lines = _FILE.read_text(encoding="utf-8").split("\n")
    cases = [json.loads(line) for line in lines if line]
    return [case for case in cases if case["strategy"] in STRATEGIES]


@pytest.mark.skipif(not _FILE.exists(), reason="the shared cases are not here")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in _cases()])
def test_case(case: dict[str, Any], embedded: LateChunker) -> None:
    text, expect, parameters = case["text"], case["expect"], dict(case["params"])
    tokenizer = parameters.pop("tokenizer", None)
    # In characters, a case may ask for pieces that a word-level tokenizer has no token for.
    any_tokenizer = tokenizer is None and parameters.get("unit", "tokens") == "tokens"
    byte_anchors = [place for place, character in enumerate(text) for _ in character.encode()]
    anchors = [np.array(byte_anchors, dtype=np.int64)]
    if any_tokenizer:
        anchors.append(embedded.planner.tokenizer.tokenize(text).anchors)
    (strategy,) = make_strategies(case["strategy"], parameters)
    if needs_vectors(strategy):
        spans = [list(chunk.span) for chunk in embedded.chunk(text, strategy=strategy)]
        _check(text, spans, expect, SourceText(text, np.array(byte_anchors, dtype=np.int64), 64))
        strategy = Semantic(embedder=random_vectors, **parameters)
    for each in anchors:
        source = SourceText(text, each, 64)
        boundaries = split(source, strategy)
        smallest = max((boundary.level for boundary in boundaries), default=0)
        spans = [list(boundary.span) for boundary in boundaries if boundary.level == smallest]
        _check(text, spans, expect, source)


def _check(text: str, spans: list[list[int]], expect: dict[str, Any], source: SourceText) -> None:
    if "spans" in expect:
        assert spans == expect["spans"]
    if "chunks" in expect:
        assert len(spans) == expect["chunks"]
    assert expect.get("min_chunks", 0) <= len(spans) <= expect.get("max_chunks", len(spans))
    assert not (expect.get("empty") and spans)
    for low, high in expect.get("atomic", []):
        assert not any(low < edge < high for span in spans for edge in span)
    if "max_size" in expect:
        ruler = ruler_of(source, expect["unit"])
        for start, end in spans:
            clusters = int(source.breaks[start + 1 : end].sum()) + 1
            size = ruler.size(Span(start, end))
            assert size <= expect["max_size"] or clusters == 1

"""Rows of cells: they add up to chunks, and to what each window alone has read."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from late_chunking.documents import Span
from late_chunking.encoding.alignment import align
from late_chunking.encoding.cells import Cells
from late_chunking.encoding.tokens import TokenizedText
from late_chunking.encoding.windows import plan_windows


@given(st.lists(st.integers(0, 5), min_size=3, max_size=30), st.integers(6, 30), st.data())
def test_cells_add_up_to_chunks_and_to_what_each_window_read(lengths: list[int], capacity: int, data) -> None:
    """Pieces, and white space between some, of any lengths, in any windows."""
    overlap = data.draw(st.integers(0, capacity - 1))
    edges = np.cumsum([1 + length for length in lengths])
    pieces = np.stack((edges[:-1], edges[1:] - np.minimum(1, np.diff(edges) - 1)), axis=1)  # [P, 2]
    count = int(edges[-1]) + 2
    windows = plan_windows(count, capacity, overlap)
    head, tail = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    cells = Cells.of(np.unique([0, *pieces.ravel(), count]), windows, head, tail)

    # Token vectors as each window reads them, no two alike, and those around the text.
    generator = np.random.default_rng(0)
    hidden = generator.standard_normal((len(windows), count, 3)).astype(np.float32)
    around = generator.standard_normal((2, 3)).astype(np.float32)
    kept = np.concatenate([hidden[w, windows.kept[w] : windows.kept[w + 1]] for w in range(len(windows))])
    ranges = zip(cells.windows, cells.starts, cells.ends, strict=True)
    rows = [hidden[window, start:end].sum(axis=0) for window, start, end in ranges]
    sums = np.array([*rows, *around[:1][: head > 0], *around[1:][: tail > 0]])
    assert len(sums) == cells.rows

    # One character a token: chunks are all runs of pieces.
    nothing = np.zeros(0, dtype=np.int64)
    tokens = TokenizedText(np.arange(count), np.arange(count), nothing, int(pieces[0, 0]), int(pieces[-1, 1]))
    runs = [*combinations(range(len(pieces)), 2), *((place, place) for place in range(len(pieces)))]
    alignment = align([Span(int(pieces[low, 0]), int(pieces[high, 1])) for low, high in runs], tokens)
    assert cells.hold(alignment)
    for chunk, (start, end) in enumerate(alignment.read):
        expected = kept[start:end].sum(axis=0)
        expected += around[0] * (alignment.leading[chunk] and head > 0)
        expected += around[1] * (alignment.trailing[chunk] and tail > 0)
        np.testing.assert_allclose(cells.sums_of(alignment, sums)[chunk], expected, atol=1e-4)
        assert cells.pooled(alignment)[chunk] == end - start + (
            head * alignment.leading[chunk] + tail * alignment.trailing[chunk]
        )

    inside = np.clip(pieces[None], windows.starts[:, None, None], windows.ends[:, None, None])  # [W, P, 2]
    holding = [window for window in range(len(windows)) if (inside[window, :, 0] < inside[window, :, 1]).any()]
    readings = cells.readings(pieces, sums).readings
    judged: list[int] = []
    for window, reading in zip(holding, readings, strict=True):
        held = np.flatnonzero(inside[window, :, 0] < inside[window, :, 1])
        assert held.tolist() == list(range(reading.first, reading.first + len(reading.counts)))
        for place, (start, end) in zip(range(len(held)), inside[window, held], strict=True):
            assert reading.counts[place] == end - start
            np.testing.assert_allclose(reading.sums[place], hidden[window, start:end].sum(axis=0), atol=1e-4)
        assert all(gap in held and gap + 1 in held for gap in range(*reading.gaps))
        judged += range(*reading.gaps)
    assert len(judged) == len(set(judged))
    # Where windows share enough, some window holds both sides of every gap.
    widest = int(np.max(pieces[1:, 0] - pieces[:-1, 1]))
    assert len(judged) == len(pieces) - 1 or overlap < 2 * (widest + 1)

"""Windows against a brute-force choice of the best window for each token."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from late_chunking.encoding.windows import plan_windows


@given(st.integers(0, 400), st.integers(1, 60), st.data())
def test_each_token_is_taken_once_from_where_it_stands_furthest_from_an_inner_edge(
    tokens: int, capacity: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, capacity - 1))
    windows = plan_windows(tokens, capacity, overlap)
    assert windows.kept[0] == 0
    assert windows.kept[-1] == tokens
    assert windows.starts[0] == 0
    assert windows.ends[-1] == tokens
    if tokens > capacity:
        assert (windows.ends - windows.starts == capacity).all()
        assert (np.diff(windows.starts)[:-1] == capacity - overlap).all()
        assert (windows.ends[:-1] - windows.starts[1:] >= overlap).all()
    for token in range(tokens):
        distances = [
            min(token - start if start else tokens, end - 1 - token if end < tokens else tokens)
            if start <= token < end
            else -1
            for start, end in zip(windows.starts, windows.ends, strict=True)
        ]
        owner = int(np.searchsorted(windows.kept, token, side="right")) - 1
        # Windows may share a start of `kept` when one of them owns nothing.
        assert distances[owner] == max(distances)
        assert owner == distances.index(max(distances)) or windows.kept[owner] == token


def test_a_text_that_fits_is_one_window() -> None:
    windows = plan_windows(10, 10, 3)
    assert (windows.starts.tolist(), windows.ends.tolist(), windows.kept.tolist()) == ([0], [10], [0, 10])

"""Consecutive pieces → groups: the best cuts under limits of size."""

from collections import deque

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.rulers import Ruler
from late_chunking.characters import IntArray
from late_chunking.documents import Span


def partition(
    starts: IntArray, ends: IntArray, gains: npt.NDArray[np.float64], ruler: Ruler, size: int | None, min_size: int
) -> list[Span]:
    """Cut where the gains of the cuts add up to the most, so that every group keeps its limits.

    Without limits that is wherever the gain is above 0. `size` is passed by a single piece
    alone that is larger. A group falls below `min_size` only where the pieces leave no other
    way, and as few do as can be. Exact, by dynamic programming, in time linear in the pieces.

    Args:
        starts: [P], of the pieces, strictly increasing.
        ends: [P].
        gains: [P - 1], what a cut after each piece but the last is worth.
        ruler: measures a group.
        size: the most it may hold; None for no limit.
        min_size: the least it should.
    """
    penalty = 1 + float(np.abs(gains).sum())
    worth = [0.0, *gains.tolist()]  # of a group's beginning at each piece
    best = [0.0]  # of the pieces before each, cut at its best, and of the cut there
    before: list[int] = []
    allowed: deque[int] = deque()  # beginnings that keep both limits, their best falling
    entered = 0
    for last in range(len(starts)):
        end = int(ends[last])
        low = 0 if size is None else min(ruler.fitting_from(starts[: last + 1], end, size), last)
        high = ruler.fitting_from(starts[: last + 1], end, min_size - 1) if min_size > 1 else last + 1
        for first in range(entered, high):
            while allowed and best[allowed[-1]] < best[first]:
                allowed.pop()
            allowed.append(first)
        entered = max(entered, high)
        while allowed and allowed[0] < low:
            allowed.popleft()
        # Those after them make groups that are too small.
        small = max(range(max(entered, low), last + 1), key=best.__getitem__, default=None)
        first, value = (allowed[0], best[allowed[0]]) if allowed else (last, -np.inf)
        if small is not None and best[small] - penalty > value:
            first, value = small, best[small] - penalty
        before.append(first)
        best.append(value + (worth[last + 1] if last + 1 < len(worth) else 0.0))
    groups = []
    end = len(starts)
    while end:
        first = before[end - 1]
        groups.append(Span(int(starts[first]), int(ends[end - 1])))
        end = first
    return groups[::-1]

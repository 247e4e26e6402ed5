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
        size: the most it may hold; None for no limit. A counting function that gives less for a
            text than for a part of it may lead to more.
        min_size: the least it should.
    """
    penalty = 1 + float(np.abs(gains).sum())
    worth = [0.0, *gains.tolist()]  # of a group's beginning at each piece
    best = [0.0]  # of the pieces before each, cut at its best, and of the cut there
    before: list[int] = []
    allowed, small = _Best(best), _Best(best)  # beginnings of a last group that keeps both limits, or is too small
    for last in range(len(starts)):
        end = int(ends[last])
        low = 0 if size is None else min(ruler.fitting_from(starts[: last + 1], end, size), last)
        high = ruler.fitting_from(starts[: last + 1], end, min_size - 1) if min_size > 1 else last + 1
        small.add_to(last + 1)
        allowed.add_to(high)
        first = allowed.first_from(low)
        other = small.first_from(max(allowed.end, low))
        value = -np.inf if first is None else best[first]
        if first is None or (other is not None and best[other] - penalty > value):
            first = last if other is None else other
            value = best[first] - penalty
        before.append(first)
        best.append(value + (worth[last + 1] if last + 1 < len(worth) else 0.0))
    groups = []
    end = len(starts)
    while end:
        first = before[end - 1]
        groups.append(Span(int(starts[first]), int(ends[end - 1])))
        end = first
    return groups[::-1]


class _Best:
    """The place of the largest value in a window that only moves forward; of equal ones, the first."""

    def __init__(self, values: list[float]) -> None:
        """Begin with an empty window.

        Args:
            values: may grow later.
        """
        self.end = 0
        self._values = values
        self._places: deque[int] = deque()  # those that no later one is better than: values fall

    def add_to(self, end: int) -> None:
        """Move the window's end on."""
        for place in range(self.end, end):
            while self._places and self._values[self._places[-1]] < self._values[place]:
                self._places.pop()
            self._places.append(place)
        self.end = max(self.end, end)

    def first_from(self, start: int) -> int | None:
        """Move the window's start on, and give the best place; None if the window is empty."""
        while self._places and self._places[0] < start:
            self._places.popleft()
        return self._places[0] if self._places else None

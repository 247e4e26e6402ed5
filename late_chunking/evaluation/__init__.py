"""Strategies, sizes and modes compared on documents and queries of one's own."""

from late_chunking.evaluation.arms import Arm, Cutting, make_arms, make_cuttings
from late_chunking.evaluation.comparison import ArmResult, compare
from late_chunking.evaluation.dataset import Dataset, Query, read_dataset
from late_chunking.evaluation.intervals import Interval, difference
from late_chunking.evaluation.vectors import Store

__all__ = [
    "Arm",
    "ArmResult",
    "Cutting",
    "Dataset",
    "Interval",
    "Query",
    "Store",
    "compare",
    "difference",
    "make_arms",
    "make_cuttings",
    "read_dataset",
]

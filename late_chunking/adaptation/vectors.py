"""Plans → vectors that gradients pass: the same windows, batches and pooling as for inference."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from late_chunking.embedder import LateChunker
from late_chunking.encoding.packing import pack
from late_chunking.encoding.pooling import pool_sums
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.plans import DocumentPlan


@dataclass(frozen=True, slots=True)
class _Item:
    """A sequence, and the first row of its plan among the rows of all."""

    sequence: TokenSequence
    first: int


def differentiable_vectors(chunker: LateChunker, plans: Sequence[DocumentPlan], *, lower: bool = False) -> torch.Tensor:
    """Give the vectors of planned documents, float32 [R, D] on the network's device, normalised.

    Args:
        chunker: the model.
        plans: each with rows of its own; at least one row in all.
        lower: compute the network, not the pooling, in bfloat16.
    """
    device = chunker.network.device
    firsts = accumulate((plan.rows for plan in plans), initial=0)
    items = [_Item(sequence, first) for plan, first in zip(plans, firsts, strict=False) for sequence in plan.sequences]
    pooled = torch.cat([torch.from_numpy(plan.pooled) for plan in plans]).to(device)  # [R]
    sums: list[torch.Tensor] = []
    rows: list[torch.Tensor] = []
    staging = chunker.reader.staging
    for part in pack(items, chunker.batch_tokens, chunker.cost):
        with staging.current():
            batch = staging.stage([item.sequence for item in part])
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=lower):
            hidden = chunker.choice.encoder.forward(batch)  # [T, D]
        sums.append(pool_sums(hidden, batch))  # [B, D]
        rows += [torch.from_numpy(item.sequence.rows) + item.first for item in part]
    added = torch.cat(sums)  # [ΣB, D]
    means = added.new_zeros(len(pooled), added.shape[1]).index_add(0, torch.cat(rows).to(device), added)
    means = means / pooled[:, None]  # [R, D]
    return torch.nn.functional.normalize(chunker.head.mapped(means.cpu()).to(device), dim=1)

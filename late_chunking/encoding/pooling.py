"""Token vectors → sums over the tokens of each span."""

import torch
import torch.nn.functional as F

from late_chunking.encoding.packing import PackedBatch


def pool_sums(hidden: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
    """Add up the token vectors of each bag, in one call.

    A span of several windows has a bag in each; its mean is the sum of their sums over the sum
    of their sizes, so a document's vectors do not depend on how its windows were batched.

    Args:
        hidden: [T, D], the encoder's output for the batch.
        batch: names the bags, none of which is empty; on the same device.

    Returns:
        float32 [B, D] on the device of `hidden`.
    """
    # embedding_bag answers in the type of its weights: cast first, so sums are in fp32.
    return F.embedding_bag(batch.bags, hidden.float(), batch.bag_offsets, mode="sum")

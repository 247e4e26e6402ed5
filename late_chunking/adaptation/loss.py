"""How well queries are told from chunks that do not answer them."""

import torch


def contrastive(queries: torch.Tensor, chunks: torch.Tensor, relevant: torch.Tensor, scale: float) -> torch.Tensor:
    """Give the mean loss of queries.

    For each chunk that answers a query, the cross-entropy of it against all chunks that do not
    (InfoNCE; van den Oord et al., 2018), averaged over these: chunks of the same document and of
    others, as many as there are.

    Args:
        queries: [Q, D], normalised.
        chunks: [C, D], normalised.
        relevant: bool [Q, C]; queries without a relevant chunk, or without any other, count nothing.
        scale: of the cosines.

    Returns:
        A scalar; 0 if no query counts.
    """
    asked = relevant.any(dim=1) & ~relevant.all(dim=1)
    relevant = relevant[asked]
    if not len(relevant):
        return (queries.sum() + chunks.sum()) * 0.0
    scores = scale * queries[asked] @ chunks.T  # [Q', C]
    others = scores.masked_fill(relevant, -torch.inf).logsumexp(dim=1, keepdim=True)  # [Q', 1]
    # log(e^s / (e^s + Σ e^others)) = -softplus(others - s)
    losses = torch.nn.functional.softplus(others - scores)  # [Q', C]
    each = (losses * relevant).sum(dim=1) / relevant.sum(dim=1)  # [Q']
    return each.mean()

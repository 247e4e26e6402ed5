"""What was found in a model folder and how the model is run, for people to read."""

from dataclasses import dataclass
from typing import Self

from late_chunking.encoding.head import Head
from late_chunking.encoding.model import Network
from late_chunking.encoding.selfcheck import Choice
from late_chunking.planning import Planner


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in use.

    Attributes:
        model: the name it was asked for by.
        revision: the commit, for a model of the hub.
        base_model: the model whose weights it was merged into, for an adapter.
        architecture: the transformer's ``model_type``.
        dimensions: D of the vectors.
        window: tokens read at once, special tokens and prompt included.
        max_document_tokens: the hard limit.
        default_size: tokens of a chunk where no size is given.
        pooling: how the model itself pools.
        normalize: whether vectors have length 1.
        query_prompt: put before queries.
        document_prompt: put before documents.
        prompt_source: where the prompts come from.
        device: where the weights are.
        dtype: their type.
        encoder: how sequences are run: ``"packed"`` without padding, or ``"padded"`` where a
            check at load found that packing would change the vectors.
        notes: what to be aware of.
    """

    model: str
    revision: str | None
    base_model: str | None
    architecture: str
    dimensions: int
    window: int
    max_document_tokens: int
    default_size: int
    pooling: str
    normalize: bool
    query_prompt: str
    document_prompt: str
    prompt_source: str
    device: str
    dtype: str
    encoder: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, planner: Planner, network: Network, head: Head, choice: Choice) -> Self:
        """Collect it from the parts of an embedder."""
        folder, settings = planner.folder, planner.settings
        return cls(
            model=folder.name,
            revision=folder.commit or settings.revision,
            base_model=folder.adapter.base if folder.adapter else None,
            architecture=str(folder.config.get("model_type", "unknown")),
            dimensions=head.dimensions,
            window=folder.window,
            max_document_tokens=settings.max_document_tokens,
            default_size=planner.default_size,
            pooling=folder.pooling,
            normalize=head.normalize,
            query_prompt=folder.prompts.query,
            document_prompt=folder.prompts.document,
            prompt_source=folder.prompts.source,
            device=str(network.device),
            dtype=str(network.dtype).removeprefix("torch."),
            encoder=choice.encoder.name,
            notes=(*folder.notes, *([f"runs padded: {choice.reason}"] if choice.reason else [])),
        )

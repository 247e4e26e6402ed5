"""The embedded model over whole documents, against other late chunkers. Imported by bench.py."""

from collections.abc import Callable
from importlib import import_module

import torch
from shapes import alternating
from splitting import Row, sample

from late_chunking import LateChunker

SIZE = 128  # tokens a chunk
_DOCUMENT = 6_000  # characters of a document


def rows(quick: bool, times: int) -> list[Row]:
    """Compare the time for the same documents, all read in windows of 256 tokens without overlap."""
    text = sample(5_000 if quick else 120_000)
    documents = [text[start : start + _DOCUMENT] for start in range(0, len(text), _DOCUMENT)]
    chunker = LateChunker("embedded", device="cpu", window_overlap=0)
    runs = ways(chunker, documents)
    taken = dict(zip(runs, alternating(list(runs.values()), torch.device("cpu"), times), strict=True))
    own = taken.pop("ours")
    tokens = sum(embedded.token_count for embedded in chunker.embed_many(documents, strategy="tokens", size=SIZE))
    least = {"chonkie": 1.05, "afterthoughts": 2.0, "sentence-transformers, naive": 0.0}
    return [
        (
            f"minilm_{name.split(',')[0].replace('-', '_')}",
            {"value": spent / own, "at_least": least[name]},
            f"MiniLM, {tokens} tokens, chunks of {SIZE}: {name} {spent:.2f} s, ours {own:.2f} s, {spent / own:.2f} ×",
        )
        for name, spent in taken.items()
    ]


def ways(chunker: LateChunker, documents: list[str]) -> dict[str, Callable[[], object]]:
    """Give our way and the others', as their documentation shows them."""
    folder = str(chunker.planner.folder.path)
    embeddings = import_module("chonkie.embeddings").SentenceTransformerEmbeddings(folder, device="cpu")
    chonkie = import_module("chonkie").LateChunker(embedding_model=embeddings, chunk_size=SIZE)
    afterthoughts = import_module("afterthoughts").LateEncoder(folder, device="cpu", normalize=True)
    model = import_module("sentence_transformers").SentenceTransformer(folder, device="cpu")
    chunks = [chunk.text for text in documents for chunk in chunker.chunk(text, strategy="tokens", size=SIZE)]

    def encode() -> object:
        return afterthoughts.encode(
            documents,
            max_length=256,
            max_chunk_sents=None,
            max_chunk_tokens=SIZE,
            prechunk_overlap_tokens=0,
            show_progress=False,
        )

    return {
        "ours": lambda: list(chunker.embed_many(documents, strategy="tokens", size=SIZE)),
        "chonkie": lambda: [chonkie.chunk(text) for text in documents],
        "afterthoughts": encode,
        "sentence-transformers, naive": lambda: model.encode(
            chunks, normalize_embeddings=True, show_progress_bar=False
        ),
    }

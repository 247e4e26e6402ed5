"""Do semantic boundaries find where the topic changes? Joins the beginnings of documents, and looks.

    python scripts/measure_topics.py DATA… [--characters 2500] [--percentile 95]

DATA are folders with `documents.jsonl` (`id`, `text`). Every three documents make a text with two
known changes. Shown: the share of these at which a chunk begins, and of all gaps between
sentences that were cut. The last line of stdout is JSON.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from late_chunking import LateChunker
from late_chunking.boundaries import Semantic

JOINED = 3


def main() -> None:
    """Compare the document's own pass, sentences read alone, and bags of words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--characters", type=int, default=2_500, help="taken of each document, to a sentence's end")
    parser.add_argument("--percentile", type=float, default=95)
    parser.add_argument("--model", default="embedded")
    arguments = parser.parse_args()
    chunker = LateChunker(arguments.model)
    texts = [text for folder in arguments.data for text in joined(folder, arguments.characters)]
    if not texts:
        parser.error(f"the data make no text of {JOINED} documents")
    gaps = sum(len(chunker.chunk(text, strategy="sentences")) - 1 for text, _ in texts)

    def alone(sentences: Sequence[str]) -> np.ndarray:
        return chunker.embed_texts(sentences)

    embedders: dict[str, str | Callable[[Sequence[str]], np.ndarray] | None] = {
        "the document's own pass": None,
        "sentences read alone": alone,
        "bag of words": "bag-of-words",
    }
    results = {}
    for name, embedder in embedders.items():
        strategy = Semantic(percentile=arguments.percentile, embedder=embedder)
        found, cut = 0, 0
        for text, changes in texts:
            starts = {chunk.span.start for chunk in chunker.chunk(text, strategy=strategy)}
            found += len(starts & changes)
            cut += len(starts) - 1
        known = sum(len(changes) for _, changes in texts)
        results[name] = {"found": found / known, "cut": cut / gaps}
        print(f"{name}: {found} of {known} changes found ({found / known:.2f}), {cut / gaps:.3f} of the gaps cut")
    print(json.dumps({"topics": results}))


def joined(folder: Path, characters: int) -> list[tuple[str, set[int]]]:
    """Join the beginnings of every three documents; give the texts, and where in them a new document begins."""
    lines = (folder / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    beginnings = [json.loads(line)["text"][:characters] for line in lines if line]
    beginnings = [text[: text.rfind(". ") + 1].strip() for text in beginnings]
    made = []
    for first in range(0, len(beginnings) - JOINED + 1, JOINED):
        parts = beginnings[first : first + JOINED]
        if all(parts):
            starts = np.cumsum([len(part) + 2 for part in parts])[:-1]
            made.append(("\n\n".join(parts), set(starts.tolist())))
    return made


if __name__ == "__main__":
    main()

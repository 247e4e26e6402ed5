"""Splitting text, against other splitters: sizes in tokens of the embedded model. Imported by bench.py."""

import random
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch
from shapes import alternating

from late_chunking import Recursive
from late_chunking.boundaries import SourceText, split
from late_chunking.planning import Planner
from late_chunking.settings import Settings

SIZE = 256
Row = tuple[str, dict[str, float], str]


def rows(quick: bool, times: int) -> list[Row]:
    """Compare with peers, and with ourselves on shorter texts of the worst kinds."""
    planner = Planner.load(Settings())
    length = 200_000 if quick else 1_000_000
    return [
        against_peers(planner, length, times),
        growth(planner, "one_line", sample(length).replace("\n", " "), times),
        growth(planner, "one_word", "x" * (length // 10), times),
    ]


def against_peers(planner: Planner, length: int, times: int) -> Row:
    """Compare with the fastest of the others; each counts with the same tokenizer, ours once."""
    text = sample(length)
    runs = {"ours": ours(planner, text), **peers(planner, text)}
    taken = dict(zip(runs, alternating(list(runs.values()), torch.device("cpu"), times), strict=True))
    own = taken.pop("ours")
    name, fastest = min(taken.items(), key=lambda item: item[1])
    others = ", ".join(f"{peer} {spent:.2f} s" for peer, spent in taken.items())
    shown = f"{len(text)} characters into chunks of {SIZE} tokens: ours {own:.2f} s, {others}; "
    return "recursive_fastest_peer", {"value": fastest / own, "at_least": 1.0}, f"{shown}{name} {fastest / own:.2f} ×"


def growth(planner: Planner, name: str, text: str, times: int) -> Row:
    """Compare the time a character of a text with that of its first quarter."""
    quarter = text[: len(text) // 4]
    whole, part = alternating([ours(planner, text), ours(planner, quarter)], torch.device("cpu"), times)
    ratio = whole / len(text) / (part / len(quarter))
    shown = (
        f"{name.replace('_', ' ')} of {len(text)} characters: {whole:.2f} s, {ratio:.2f} × a quarter's time a character"
    )
    return f"recursive_{name}", {"value": ratio, "at_most": 1.5}, shown


def ours(planner: Planner, text: str) -> Callable[[], None]:
    """Give our way: tokenize once, split."""

    def run() -> None:
        tokens = planner.tokenizer.tokenize(text)
        split(SourceText(text, tokens.anchors, planner.default_size), Recursive(SIZE))

    return run


def peers(planner: Planner, text: str) -> dict[str, Callable[[], object]]:
    """Give the others' ways, as their documentation shows them."""
    backend = planner.tokenizer.backend

    def count(piece: str) -> int:
        return len(backend.encode(piece, add_special_tokens=False).ids)

    def semchunk() -> object:
        # It remembers what a function has counted: one of its own for each run, or the next has nothing to do.
        return import_module("semchunk").chunkerify(lambda piece: count(piece), chunk_size=SIZE)(text)

    rust = import_module("semantic_text_splitter").TextSplitter.from_huggingface_tokenizer(backend, SIZE)
    langchain = import_module("langchain_text_splitters").RecursiveCharacterTextSplitter(
        chunk_size=SIZE, chunk_overlap=0, length_function=count, separators=["\n\n", "\n", ". ", " ", ""]
    )
    return {
        "semchunk": semchunk,
        "semantic-text-splitter": lambda: rust.chunks(text),
        "langchain": lambda: langchain.split_text(text),
    }


def sample(length: int) -> str:
    """Make a text of paragraphs: sentences of the sample, in random order with random numbers between."""
    source = (Path(__file__).parent / "sample.txt").read_text(encoding="utf-8")
    sentences = [sentence.strip() for sentence in source.replace("\n", " ").split(". ") if sentence.strip()]
    chosen = random.Random(0)
    paragraphs: list[str] = []
    made = 0
    while made < length:
        count = chosen.randint(2, 9)
        paragraph = " ".join(
            f"{chosen.choice(sentences)} for the {chosen.randint(1, 9999)}th time." for _ in range(count)
        )
        paragraphs.append(paragraph)
        made += len(paragraph) + 2
    return "\n\n".join(paragraphs)[:length]

"""Stand-ins for a chunker: the real one, with something put between its encoder and the server."""

import copy
import threading
from collections.abc import Iterable, Iterator, Sequence

from late_chunking import LateChunker
from late_chunking.encoding.reader import Reader, Results
from late_chunking.errors import DeviceError

FAULT = "FAULT"


def text_of(item) -> str:
    """The text of the document that a sequence on the device belongs to."""
    return item.pending.document.plan.document.text


class Between(Reader):
    """Reads as the reader it stands before; subclasses do something around a batch."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.encoder, reader.staging)
        self.faulty: set[int] = set()  # sequences of documents that hold the word FAULT

    def before(self, texts: Sequence[str]) -> None:
        """Called before a batch of sequences of these documents is read."""

    def after(self, texts: Sequence[str], results: Results) -> Results:
        """Called with what came of it."""
        return results

    def read_all(self, batches: Iterable[Sequence]) -> Iterator[tuple[Sequence, Results]]:
        self.texts: list[str] = []

        def watched() -> Iterator[Sequence]:
            for batch in batches:
                self.texts = [text_of(item) for item in batch]
                self.faulty |= {id(item.sequence) for item in batch if FAULT in text_of(item)}
                if batch:
                    self.before(self.texts)
                yield batch

        for batch, results in super().read_all(watched()):
            yield batch, self.after(self.texts, results)

    def read(self, sequences: Sequence) -> Results:
        self.again(sequences)
        return super().read(sequences)

    def again(self, sequences: Sequence) -> None:
        """Called before sequences are read outside of a batch."""


def around(chunker: LateChunker, reader: Between) -> LateChunker:
    """A chunker with another reader."""
    other = copy.copy(chunker)
    other.reader = reader
    return other


class Gate(Between):
    """Reads nothing while it is closed, and notes the documents of each batch."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.batches: list[list[str]] = []

    def before(self, texts: Sequence[str]) -> None:
        self.batches.append(list(texts))
        self.entered.set()
        assert self.open.wait(30)

    def close(self) -> None:
        """Close it, and forget what has passed."""
        self.open.clear()
        self.entered.clear()
        self.batches.clear()


class Raising(Between):
    """Raises `error` for batches that hold the word FAULT, and, if `lost`, for everything after."""

    def __init__(self, reader: Reader, error: BaseException, *, lost: bool = False) -> None:
        super().__init__(reader)
        self.error = error
        self.lost = lost
        self.is_lost = False

    def before(self, texts: Sequence[str]) -> None:
        if self.is_lost or any(FAULT in text for text in texts):
            self.is_lost = self.lost
            raise self.error

    def again(self, sequences: Sequence) -> None:
        if self.is_lost or any(id(sequence) in self.faulty for sequence in sequences):
            raise self.error


class Failing(Between):
    """Sequences of documents that hold the word FAULT fail on the device with `error`."""

    def __init__(self, reader: Reader, error: DeviceError) -> None:
        super().__init__(reader)
        self.error = error

    def after(self, texts: Sequence[str], results: Results) -> Results:
        return [self.error if FAULT in text else result for text, result in zip(texts, results, strict=True)]

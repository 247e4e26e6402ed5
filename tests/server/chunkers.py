"""Stand-ins for a chunker: the real one, with something put between it and the server."""

import threading
from collections.abc import Iterator

from late_chunking import FailedDocument, LateChunker


class Wrapped:
    """Behaves as the chunker it wraps."""

    def __init__(self, chunker: LateChunker) -> None:
        self._chunker = chunker

    def __getattr__(self, name):
        return getattr(self._chunker, name)


class Gated(Wrapped):
    """Runs nothing while its gate is closed, and notes the documents of each round."""

    def __init__(self, chunker: LateChunker) -> None:
        super().__init__(chunker)
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.rounds: list[list[str]] = []

    def run(self, plans) -> Iterator:
        plans = list(plans)
        self.rounds.append([plan.document.text for plan in plans])
        self.entered.set()
        assert self.gate.wait(30)
        return self._chunker.run(plans)

    def close(self) -> None:
        """Close the gate, and forget what passed it."""
        self.gate.clear()
        self.entered.clear()
        self.rounds.clear()


class Raising(Wrapped):
    """Raises `error` in rounds that hold the word FAULT: at once, or after the first outcome."""

    def __init__(self, chunker: LateChunker, error: BaseException, *, late: bool = False) -> None:
        super().__init__(chunker)
        self._error = error
        self._late = late

    def run(self, plans) -> Iterator:
        plans = list(plans)
        faulty = any("FAULT" in plan.document.text for plan in plans)
        if faulty and not self._late:
            raise self._error
        for outcome in self._chunker.run(plans):
            yield outcome
            if faulty:
                raise self._error


class Failing(Wrapped):
    """Documents that hold the word FAULT fail on the device with `error`."""

    def __init__(self, chunker: LateChunker, error: Exception) -> None:
        super().__init__(chunker)
        self._error = error

    def run(self, plans) -> Iterator:
        for outcome in self._chunker.run(plans):
            faulty = "FAULT" in outcome.document.text
            yield FailedDocument(outcome.id, outcome.index, self._error) if faulty else outcome


class Short(Wrapped):
    """Loses the last outcome of rounds that hold the word FAULT."""

    def run(self, plans) -> Iterator:
        plans = list(plans)
        lost = any("FAULT" in plan.document.text for plan in plans)
        return self._chunker.run(plans[:-1] if lost else plans)


class Lost(Wrapped):
    """Its device can be lost, for every round, and come back."""

    lost = False

    def run(self, plans) -> Iterator:
        if self.lost:
            raise RuntimeError("device lost")
        return self._chunker.run(plans)

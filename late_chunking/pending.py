"""Documents on their way through the encoder: which sequences are out, and the sums so far."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from late_chunking.documents import FailedDocument
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import DeviceError, LateChunkingError
from late_chunking.planning import Planner
from late_chunking.plans import Draft, Plan

# Documents that may pile up behind one whose batch is not full, when they have nothing to read.
_MOST_WAITING: Final = 64


@dataclass(slots=True, eq=False)
class PendingDocument:
    """A document whose sequences are being read.

    Attributes:
        plan: the document.
        sums: float32 [rows, D], sums of token vectors so far; [0, 0] before the first.
        missing: sequences not read yet; 0 for a document that failed.
        error: why it failed.
    """

    plan: Plan
    sums: npt.NDArray[np.float32] = field(init=False)
    missing: int = field(init=False)
    error: LateChunkingError | None = None

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self.sums = np.zeros((0, 0), dtype=np.float32)
        self.missing = len(self.plan.sequences)

    def add(self, sequence: TokenSequence, result: npt.NDArray[np.float32] | DeviceError) -> None:
        """Take in what one sequence adds to the rows it names, [B, D], or that it could not be read."""
        if self.error is not None:
            return
        if isinstance(result, DeviceError):
            self.error, self.missing = result, 0
            return
        if not len(self.sums):
            self.sums = np.zeros((self.plan.rows, result.shape[1]), dtype=np.float32)
        self.sums[sequence.rows] += result
        self.missing -= 1

    def settle(self, planner: Planner) -> bool:
        """Cut a document that was read for that, and tell whether there is more of it to read."""
        if not isinstance(self.plan, Draft):
            return False
        try:
            self.plan, self.sums = planner.settle(self.plan, self.sums)
        except LateChunkingError as error:  # also what a function of the caller's raises for a context
            self.error = error
            return False
        self.missing = len(self.plan.sequences)
        return self.missing > 0


@dataclass(frozen=True, slots=True)
class PendingSequence:
    """A sequence and the document it belongs to."""

    sequence: TokenSequence
    document: PendingDocument


class DocumentQueue:
    """Hands out documents' sequences in order, and documents, in the same order, once read."""

    def __init__(self, plans: Iterable[Plan | FailedDocument], planner: Planner) -> None:
        """Begin with planned documents; ones that failed already keep their place.

        Args:
            plans: the documents.
            planner: cuts those that have to be read first.
        """
        self._plans = plans
        self._planner = planner
        self._waiting: deque[PendingDocument | FailedDocument] = deque()
        self._again: deque[PendingDocument] = deque()
        self._drafts = 0

    def sequences(self) -> Iterator[PendingSequence | None]:
        """Hand out the sequences, planning documents only as far as they are asked for.

        None asks to close the batch: documents without sequences have come, and would otherwise
        wait, in any number, for one that fills it; or no more come, and some must be read to be cut.
        """
        for plan in self._plans:
            document = plan if isinstance(plan, FailedDocument) else PendingDocument(plan)
            self._waiting.append(document)
            yield from self._read_again()
            if isinstance(document, FailedDocument) or not document.missing:
                if self._front_is_done() or len(self._waiting) > _MOST_WAITING:
                    yield None
                continue
            self._drafts += isinstance(plan, Draft)
            yield from self._sequences_of(document)
        if self._drafts:
            yield None
        yield from self._read_again()

    def add(self, item: PendingSequence, result: npt.NDArray[np.float32] | DeviceError) -> None:
        """Take in what a sequence adds to its document; one read to be cut is cut once it is complete."""
        document = item.document
        is_open = isinstance(document.plan, Draft) and document.missing > 0
        document.add(item.sequence, result)
        if is_open and not document.missing:
            self._drafts -= 1
            if document.error is None and document.settle(self._planner):
                self._again.append(document)

    def _sequences_of(self, document: PendingDocument) -> Iterator[PendingSequence]:
        """Hand out the sequences of one document, until one of them fails."""
        for sequence in document.plan.sequences:
            if document.error is None:
                yield PendingSequence(sequence, document)

    def _read_again(self) -> Iterator[PendingSequence]:
        """Hand out the sequences of documents that are cut now, but have more to read."""
        while self._again:
            yield from self._sequences_of(self._again.popleft())

    def done(self) -> Iterator[PendingDocument | FailedDocument]:
        """Give, and forget, the documents at the front of the queue that need no more reading."""
        while self._front_is_done():
            yield self._waiting.popleft()

    def _front_is_done(self) -> bool:
        """Tell whether the document at the front needs no more reading."""
        if not self._waiting:
            return False
        front = self._waiting[0]
        return isinstance(front, FailedDocument) or not front.missing

"""Documents on their way through the encoder: which sequences are out, and the sums so far."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from late_chunking.documents import FailedDocument
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import DeviceError
from late_chunking.planning import DocumentPlan

# Documents that may pile up behind one whose batch is not full, when they have nothing to read.
_MOST_WAITING: Final = 64


@dataclass(slots=True, eq=False)
class PendingDocument:
    """A document whose sequences are being read.

    Attributes:
        plan: the document.
        sums: float32 [C, D], sums of token vectors so far; [0, 0] before the first.
        missing: sequences not read yet; 0 for a document that failed.
        error: why it failed.
    """

    plan: DocumentPlan
    sums: npt.NDArray[np.float32] = field(init=False)
    missing: int = field(init=False)
    error: DeviceError | None = None

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
            self.sums = np.zeros((len(self.plan.chunks), result.shape[1]), dtype=np.float32)
        self.sums[sequence.rows] += result
        self.missing -= 1


@dataclass(frozen=True, slots=True)
class PendingSequence:
    """A sequence and the document it belongs to."""

    sequence: TokenSequence
    document: PendingDocument


class DocumentQueue:
    """Hands out documents' sequences in order, and documents, in the same order, once read."""

    def __init__(self, plans: Iterable[DocumentPlan | FailedDocument]) -> None:
        """Begin with planned documents; ones that failed already keep their place."""
        self._plans = plans
        self._waiting: deque[PendingDocument | FailedDocument] = deque()

    def sequences(self) -> Iterator[PendingSequence | None]:
        """Hand out the sequences, planning documents only as far as they are asked for.

        None asks to close the batch: documents without sequences have come, and would otherwise
        wait, in any number, for one that fills it.
        """
        for plan in self._plans:
            document = plan if isinstance(plan, FailedDocument) else PendingDocument(plan)
            self._waiting.append(document)
            if isinstance(document, FailedDocument) or not document.missing:
                if self._front_is_done() or len(self._waiting) > _MOST_WAITING:
                    yield None
                continue
            for sequence in document.plan.sequences:
                if document.error is None:
                    yield PendingSequence(sequence, document)

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

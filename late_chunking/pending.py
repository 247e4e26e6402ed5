"""Documents on their way through the encoder: which sequences are out, and the sums so far."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from late_chunking.documents import FailedDocument
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import DeviceError
from late_chunking.planning import DocumentPlan


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

    def sequences(self) -> Iterator[PendingSequence]:
        """Hand out the sequences, planning documents only as far as they are asked for."""
        for plan in self._plans:
            if isinstance(plan, FailedDocument):
                self._waiting.append(plan)
                continue
            document = PendingDocument(plan)
            self._waiting.append(document)
            for sequence in plan.sequences:
                if document.error is None:
                    yield PendingSequence(sequence, document)

    def done(self) -> Iterator[PendingDocument | FailedDocument]:
        """Give, and forget, the documents at the front of the queue that need no more reading."""
        while self._waiting and (isinstance(self._waiting[0], FailedDocument) or not self._waiting[0].missing):
            yield self._waiting.popleft()

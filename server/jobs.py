"""A request's planned documents on their way through the device, and what has come of them.

A job belongs to two threads: its handler's event loop awaits outcomes, the device thread hands
out sequences and takes in sums. Knows nothing of HTTP.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from late_chunking.documents import FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.encoding.staging import Sums
from late_chunking.errors import DeviceError
from late_chunking.pending import DocumentQueue, PendingDocument, PendingSequence
from late_chunking.planning import Planner
from late_chunking.plans import Plan

Finish = Callable[[PendingDocument | FailedDocument], Outcome]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a request's time went, in seconds.

    Attributes:
        tokenization: cutting and tokenizing.
        queue: waiting for a thread to tokenize it, and for the device.
        inference: from the first of its sequences on the device to its last document.
    """

    tokenization: float = 0.0
    queue: float = 0.0
    inference: float = 0.0


@dataclass(slots=True, eq=False)
class Job:
    """Plans of one request.

    Attributes:
        plans: what is to be read.
        urgent: whether it goes before others: queries, which somebody waits for.
        planner: cuts documents that must be read first.
        finish: turns sums into vectors.
        tokens: tokens to read that have not been read.
        served: cost of what the device has taken of it, on the scheduler's scale.
        out: sequences that the device has, and has not answered.
        submitted: when, by `time.perf_counter`.
        begun: when the device took its first sequence.
        ended: when its last outcome came.
    """

    plans: Sequence[Plan]
    urgent: bool
    planner: Planner
    finish: Finish
    tokens: int = field(init=False)
    served: float = 0.0
    out: int = 0
    submitted: float = field(default_factory=time.perf_counter)
    begun: float | None = None
    ended: float | None = None
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _outcomes: "asyncio.Queue[list[Outcome] | Exception]" = field(init=False)
    _queue: DocumentQueue = field(init=False)
    _sequences: Iterator[PendingSequence | None] = field(init=False)
    _held_back: PendingSequence | None = None
    _waits: bool = False
    _left: int = field(init=False)
    _dropped: bool = False

    def __post_init__(self) -> None:
        """Begin; to be made on the event loop that awaits it."""
        self._loop, self._outcomes = asyncio.get_running_loop(), asyncio.Queue()
        self._queue = DocumentQueue(self.plans, self.planner)
        self._sequences = self._queue.sequences()
        self.tokens = sum(map(_tokens_of, self.plans))
        self._left = len(self.plans)

    # What the event loop does.

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Give what became of each document, in order, as it comes.

        Raises:
            Exception: what the job failed with; nothing comes after it.
        """
        missing = len(self.plans)
        while missing:
            found = await self._outcomes.get()
            if isinstance(found, Exception):
                raise found
            missing -= len(found)
            for outcome in found:
                yield outcome

    def drop(self) -> None:
        """Give the job up: nobody waits for it any longer."""
        self._dropped = True

    @property
    def timings(self) -> Timings:
        """Where its time has gone so far; of tokenizing it knows nothing."""
        begun, ended = self.begun or time.perf_counter(), self.ended or time.perf_counter()
        return Timings(queue=begun - self.submitted, inference=max(0.0, ended - begun))

    # What the device thread does.

    @property
    def over(self) -> bool:
        """Whether nothing more is to be done for it."""
        return self._dropped or not self._left

    def next(self) -> PendingSequence | None:
        """Give the next sequence to read; None if there is none, or none before what is out has been read.

        Raises:
            RuntimeError: if documents are left that nothing is read for.
        """
        item, self._held_back = self._held_back, None
        if item is not None:
            return item
        while not (self._waits and self.out) and not self.over:
            self._waits = False
            item = next(self._sequences, None)
            if item is not None:
                return item
            if self.out:
                self._waits = True
            elif not self.deliver():
                raise RuntimeError("documents are left that nothing is read for")
        return None

    def hold_back(self, item: PendingSequence) -> None:
        """Take a sequence back, to be given next."""
        self._held_back = item

    def add(self, item: PendingSequence, result: Sums | DeviceError) -> None:
        """Take in what came of a sequence."""
        self.out -= 1
        plan = item.document.plan
        self._queue.add(item, result)
        if item.document.plan is not plan:  # it was read to be cut, and there may be more to read
            self.tokens += _tokens_of(item.document.plan)

    def deliver(self) -> bool:
        """Hand over the documents that are done, and tell whether there were any."""
        done = [self.finish(pending) for pending in self._queue.done()]
        if done:
            self._left -= len(done)
            if not self._left:
                self.ended = time.perf_counter()
            self._put(done)
        return bool(done)

    def fail(self, error: Exception) -> None:
        """End the job with an error."""
        self._left = 0
        self._put(error)

    def _put(self, found: list[Outcome] | Exception) -> None:
        """Hand something to the event loop."""
        try:
            self._loop.call_soon_threadsafe(self._outcomes.put_nowait, found)
        except RuntimeError:
            # The loop is closed, and with it whoever awaited this.
            _logger.warning("a result came after its event loop was closed")


@dataclass(frozen=True, slots=True)
class Item:
    """A sequence on the device, and the job it belongs to."""

    pending: PendingSequence
    job: Job

    @property
    def sequence(self) -> TokenSequence:
        """The sequence."""
        return self.pending.sequence


def _tokens_of(plan: Plan) -> int:
    """Count the tokens to read for a document."""
    return sum(map(len, plan.sequences))

"""The device thread: takes sequences of whatever requests are waiting, and reads them together.

Knows nothing of HTTP. Whoever waits always gets an answer.
"""

import asyncio
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from late_chunking import LateChunker
from late_chunking.encoding.reader import Results
from late_chunking.plans import Plan
from server.errors import BackendError, NotReady, Overloaded
from server.jobs import Item, Job
from server.logs import trace_of
from server.metrics import Metrics

Result = TypeVar("Result")

_LONGEST_RETRY: Final = 60
_LAST_SECONDS: Final = 10  # for what is out on the device when the server stops
_SMOOTHING: Final = 0.2  # share of the last batch in what is expected of the next

_logger = logging.getLogger(__name__)


class Scheduler:
    """Batches across requests on one thread.

    Every batch is filled to the encoder's budget: urgent jobs first, then always from the job that
    has had least so far, so that one with a thousand documents does not keep one with a single
    document waiting. What is out on the device is staged one batch ahead where the device allows.
    """

    def __init__(
        self, chunker: LateChunker, max_queued_tokens: int, metrics: Metrics, on_death: Callable[[], None]
    ) -> None:
        """Make a scheduler; `start` begins its thread.

        Args:
            chunker: the model.
            max_queued_tokens: tokens that may wait; a job beyond is refused, unless it is alone.
            metrics: is told of batches.
            on_death: called if the thread ends by itself.
        """
        self._chunker = chunker
        self._max_queued_tokens = max_queued_tokens
        self._metrics = metrics
        self._on_death = on_death
        self._jobs: list[Job] = []
        self._condition = threading.Condition()
        self._closed = False
        self._warm = False
        self._out: list[list[Item]] = []
        self._asked: float | None = None  # since when the device owes an answer
        self._pace = 0.0  # tokens a second
        self._splits = 0
        self._thread = threading.Thread(target=self._work, name="device", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether plans that are submitted now will be read."""
        return self._thread.is_alive() and not self._closed

    @property
    def warm(self) -> bool:
        """Whether the device has read something."""
        return self._warm

    @property
    def overdue(self) -> float:
        """For how many seconds the device has owed an answer."""
        asked = self._asked
        return 0.0 if asked is None else time.perf_counter() - asked

    @property
    def queued_tokens(self) -> int:
        """Tokens that wait, or are being read."""
        with self._condition:
            return sum(max(0, job.tokens) for job in self._jobs if not job.over)

    def start(self) -> None:
        """Start the device thread."""
        self._thread.start()

    def close(self) -> None:
        """Have the thread end after what is out on the device; whoever still waits fails as not ready."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    async def stop(self) -> None:
        """Close, and wait for the thread's end."""
        self.close()
        await asyncio.to_thread(self._thread.join, _LAST_SECONDS)
        if self._thread.is_alive():
            _logger.critical("the device does not answer; it is left")

    def check_room(self, more: int = 0) -> None:
        """Pass if so many more tokens may wait.

        Raises:
            Overloaded: if not, with the time after which there may be room.
        """
        queued = self.queued_tokens
        if queued and queued + more > self._max_queued_tokens:
            self._metrics.rejected.labels("queued_tokens").inc()
            raise Overloaded(
                f"{queued} tokens are waiting; {more} more are over max_queued_tokens, {self._max_queued_tokens}",
                retry_after=self._patience(queued),
            )

    def submit(self, plans: Sequence[Plan], *, urgent: bool = False) -> Job:
        """Queue plans; to be called on the event loop that awaits their outcomes.

        Raises:
            Overloaded: if too many tokens are waiting.
            NotReady: if there is no device thread.
        """
        job = Job(plans, urgent, self._chunker.planner, self._chunker.finish)
        # What is longer than a batch is no query that somebody waits for.
        job.urgent = urgent and job.tokens <= self._chunker.batch_tokens
        self.check_room(job.tokens)
        with self._condition:
            if not self.alive:
                raise NotReady("the device thread is not running")
            # It has had as much as the one that has had least: no credit for having come late.
            job.served = min((other.served for other in self._jobs), default=0.0)
            self._jobs.append(job)
            self._condition.notify()
        return job

    def _patience(self, queued: int) -> int:
        """Say after how many seconds so many tokens may have been read."""
        return min(_LONGEST_RETRY, max(1, math.ceil(queued / self._pace))) if self._pace else 1

    def _work(self) -> None:
        """Read until closed."""
        try:
            self._chunker.warm_up()
            self._warm = True
            while not self._closed:
                try:
                    for batch, results in self._chunker.reader.read_all(self._batches()):
                        self._take_in(batch, results)
                except Exception as error:
                    _logger.error("a batch failed on the device: %s", trace_of(error))  # noqa: TRY400
                    self._read_apart()
        finally:
            # Also where something that is no Exception ends the thread: nobody waits for ever.
            with self._condition:
                died, self._closed = not self._closed, True
                left, self._jobs = self._jobs, []
            for job in left:
                job.fail(NotReady("the device thread has ended"))
            if died:
                _logger.critical("the device thread has ended")
                self._on_death()

    def _batches(self) -> Iterator[list[Item]]:
        """Give batches as long as the scheduler is open, waiting where there is nothing to read.

        An empty one asks for the results of all that is out: more may come of those.
        """
        while not self._closed:
            if batch := self._fill():
                self._out.append(batch)
                self._asked = self._asked or time.perf_counter()
                yield batch
            elif self._out:
                yield []
            else:
                with self._condition:
                    if not self._jobs and not self._closed:
                        self._condition.wait()

    def _fill(self) -> list[Item]:
        """Take sequences for one batch."""
        with self._condition:
            self._jobs = [job for job in self._jobs if not job.over]
            ready = list(self._jobs)
        batch: list[Item] = []
        spent = 0.0
        while ready:
            job = min(ready, key=lambda job: (not job.urgent, job.served))
            pending = _guarded(job, job.next)
            if pending is None:
                ready.remove(job)
                continue
            price = self._chunker.cost(pending.sequence)
            if batch and spent + price > self._chunker.batch_tokens:
                job.hold_back(pending)
                break
            batch.append(Item(pending, job))
            spent += price
            job.served += price
            job.out += 1
            job.begun = job.begun or time.perf_counter()
        return batch

    def _take_in(self, batch: Sequence[Item], results: Results) -> None:
        """Hand results to their jobs."""
        if not batch:
            return
        self._out.pop(0)
        now = time.perf_counter()
        taken, self._asked = now - (self._asked or now), now if self._out else None
        tokens = sum(len(item.sequence) for item in batch)
        self._pace += (tokens / max(taken, 1e-6) - self._pace) * (_SMOOTHING if self._pace else 1.0)
        self._hand_over(batch, results)
        documents = len({id(item.pending.document) for item in batch})
        self._metrics.batch(tokens, documents, taken, self._chunker.reader.splits - self._splits)
        self._splits = self._chunker.reader.splits

    def _hand_over(self, batch: Sequence[Item], results: Results) -> None:
        """Add results to their jobs, and let those deliver what is done."""
        for item, result in zip(batch, results, strict=True):
            _guarded(item.job, partial(item.job.add, item.pending, result))
            item.job.tokens -= len(item.sequence)
        for job in {id(item.job): item.job for item in batch}.values():
            _guarded(job, job.deliver)

    def _read_apart(self) -> None:
        """Read what was out once more, job by job: one of them may be to blame, and fails alone.

        Raises:
            Exception: if the device does not even read a single word: it is lost, and the thread with it.
        """
        out = sorted(itertools.chain.from_iterable(self._out), key=lambda item: id(item.job))
        self._out = []
        failed = False
        for _, group in itertools.groupby(out, key=lambda item: id(item.job)):
            items = list(group)
            self._asked = time.perf_counter()
            try:
                self._hand_over(items, self._chunker.reader.read([item.sequence for item in items]))
            except Exception as error:
                failed = True
                _fail(items[0].job, error)
        self._asked = time.perf_counter()
        if failed:
            self._chunker.reader.read(next(self._chunker.plan_texts(["ready"])).sequences)
        self._asked = None


def _guarded(job: Job, step: Callable[[], Result]) -> Result | None:
    """Do something for a job; what goes wrong there fails that job alone."""
    try:
        return step()
    except Exception as error:
        _fail(job, error)
        return None


def _fail(job: Job, error: Exception) -> None:
    """Fail a job, without the error's words, which may hold anything."""
    _logger.error("a request failed: %s", trace_of(error))
    job.fail(BackendError(f"the encoder failed: {type(error).__name__}"))

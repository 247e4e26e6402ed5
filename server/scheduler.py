"""The device thread: takes the plans of whatever requests are waiting, and runs them together.

Knows nothing of HTTP. Whoever waits always gets an answer.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from late_chunking.embedder import Outcome
from late_chunking.plans import Plan
from server.errors import BackendError, NotReady

Run: TypeAlias = Callable[[Sequence[Plan]], Iterator[Outcome]]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a request's time went, in seconds.

    Attributes:
        tokenization: cutting and tokenizing.
        queue: waiting for a thread to tokenize it, and for the device.
        inference: from the start of its round on the device to its last document.
    """

    tokenization: float
    queue: float
    inference: float


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of one request's plans.

    Attributes:
        outcomes: one a plan, in order.
        queue: seconds before the device began.
        inference: seconds from there on.
    """

    outcomes: tuple[Outcome, ...]
    queue: float
    inference: float


@dataclass(slots=True, eq=False)
class _Job:
    """One request's plans, and the future that its handler awaits."""

    plans: Sequence[Plan]
    future: "asyncio.Future[Completed]"
    submitted: float = field(default_factory=time.perf_counter)
    tokens: int = field(init=False)

    def __post_init__(self) -> None:
        """Count what the encoder will read."""
        self.tokens = sum(len(sequence) for plan in self.plans for sequence in plan.sequences)

    def resolve(self, result: Completed | Exception) -> None:
        """Hand the result to the handler's event loop. May be called from any thread, and twice: the first counts."""
        try:
            self.future.get_loop().call_soon_threadsafe(self._settle, result)
        except RuntimeError:
            # The loop is closed, and with it whoever awaited this.
            _logger.warning("a result came after its event loop was closed")

    def _settle(self, result: Completed | Exception) -> None:
        """Settle the future, unless its handler has left or it was settled before."""
        if self.future.done():
            return
        if isinstance(result, Completed):
            self.future.set_result(result)
        else:
            self.future.set_exception(result)


class Scheduler:
    """Batches across requests on one thread."""

    def __init__(self, run: Run, batch_tokens: int) -> None:
        """Make a scheduler; `start` begins its thread.

        Args:
            run: embeds plans, in order, as `LateChunker.run` does.
            batch_tokens: a round takes its first request whole, and of those behind it about
                as many tokens as this. So a round is never so long that latecomers starve.
        """
        self._run = run
        self._batch_tokens = batch_tokens
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._condition = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="device", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether plans that are submitted now will be run."""
        return self._thread.is_alive() and not self._closed

    def start(self) -> None:
        """Start the device thread."""
        self._thread.start()

    async def stop(self) -> None:
        """End the thread after its present round; what still waits fails as not ready."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        await asyncio.to_thread(self._thread.join)

    async def embed(self, plans: Sequence[Plan]) -> Completed:
        """Wait until plans have been run. If the caller is cancelled before they begin, they are skipped.

        Raises:
            BackendError: if the round they were in failed.
            NotReady: if there is no device thread.
        """
        job = _Job(plans, asyncio.get_running_loop().create_future())
        with self._condition:
            if not self.alive:
                raise NotReady("the device thread is not running")
            self._waiting.append(job)
            self._condition.notify()
        return await job.future

    def _work(self) -> None:
        """Run rounds until closed."""
        try:
            while jobs := self._next_round():
                self._run_round(jobs)
        finally:
            # Also where something that is no Exception ends the thread: nobody waits for ever.
            with self._condition:
                self._closed = True
                left = [*self._running, *self._waiting]
                self._waiting.clear()
            for job in left:
                job.resolve(NotReady("the device thread has ended"))

    def _next_round(self) -> list[_Job]:
        """Wait for requests, and take those of the next round. None are left once closed."""
        with self._condition:
            while not self._closed:
                if jobs := self._take():
                    return jobs
                self._condition.wait()
        return []

    def _take(self) -> list[_Job]:
        """Take waiting requests, in order, but those whose client has left."""
        jobs: list[_Job] = []
        tokens = 0
        while self._waiting:
            job = self._waiting[0]
            if not job.future.cancelled():
                if jobs and tokens + job.tokens > self._batch_tokens:
                    break
                tokens += job.tokens if jobs else 0
                jobs.append(job)
            self._waiting.popleft()
        return jobs

    def _run_round(self, jobs: list[_Job]) -> None:
        """Run the plans of several requests, and answer each as soon as its last document is done."""
        self._running = jobs
        left = list(jobs)
        begun = time.perf_counter()
        try:
            outcomes = iter(self._run([plan for job in jobs for plan in job.plans]))
            for job in jobs:
                own = tuple(itertools.islice(outcomes, len(job.plans)))
                if len(own) != len(job.plans):
                    raise BackendError(f"the encoder gave {len(own)} outcomes for {len(job.plans)} documents")
                job.resolve(Completed(own, begun - job.submitted, time.perf_counter() - begun))
                left.remove(job)
        except Exception as error:
            _logger.exception("a round of %d requests failed on the device", len(jobs))
            if len(jobs) == 1:
                jobs[0].resolve(BackendError(f"the encoder failed: {type(error).__name__}"))
            else:
                # One of them may be to blame; the others need not share its fate.
                for job in left:
                    self._run_round([job])
        self._running = []

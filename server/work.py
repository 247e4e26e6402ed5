"""One request's documents, from planning to the last outcome: deadline, cancellation, times."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Final, TypeVar

from starlette.requests import Request

from late_chunking.documents import EmbeddedDocument, FailedDocument
from late_chunking.embedder import Outcome
from late_chunking.errors import NonFiniteVector
from late_chunking.plans import Plan
from server.errors import ClientGone, DeadlineExceeded, NotReady
from server.jobs import Job, Timings
from server.metrics import Metrics
from server.scheduler import Scheduler

Result = TypeVar("Result")

TIMINGS: Final = "timings"
# A thread plans this long for one request, then for the next that waits.
_SLICE_SECONDS: Final = 0.02


class Work:
    """What is done for one request. Closed in any case, so that nothing is read for nobody."""

    def __init__(
        self, request: Request, scheduler: Scheduler, pool: Executor, metrics: Metrics, timeout: float
    ) -> None:
        """Begin, with so many seconds to end."""
        self._request = request
        self._scheduler = scheduler
        self._pool = pool
        self._metrics = metrics
        self._timeout = timeout
        self._deadline = asyncio.get_running_loop().time() + timeout
        self._watching: asyncio.Task[None] | None = None
        self._tokenization = self._waited = 0.0
        self._job: Job | None = None

    async def __aenter__(self) -> "Work":
        """Begin."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """End."""
        self.close()

    def close(self) -> None:
        """Give up what has not been read yet, and note the times. To be called once."""
        if self._watching is not None:
            self._watching.cancel()
        if self._job is not None:
            self._job.drop()
        timings = self.timings
        setattr(self._request.state, TIMINGS, timings)
        if self._job is not None:
            self._metrics.queue_seconds.observe(timings.queue)
            self._metrics.tokenization_seconds.observe(timings.tokenization)
            self._metrics.inference_seconds.observe(timings.inference)

    @property
    def timings(self) -> Timings:
        """Where the time has gone so far."""
        device = Timings() if self._job is None else self._job.timings
        return replace(device, tokenization=self._tokenization, queue=self._waited + device.queue)

    async def plan(self, plans: Callable[[], Iterator[Plan]]) -> list[Plan]:
        """Make plans on a thread, a slice at a time, so that other requests have their turn.

        Raises:
            InvalidInput: what making them raises.
            Overloaded: at once, if no more tokens may wait.
            DeadlineExceeded: if there is no time left.
            ClientGone: if nobody waits for them any longer.
        """
        self._scheduler.check_room()
        found: list[Plan] = []
        making = plans()
        ended = False
        while not ended:
            arrived = time.perf_counter()
            begun, done, (part, ended) = await self._on_thread(lambda: _timed(lambda: _slice(making)))
            self._waited += begun - arrived
            self._tokenization += done - begun
            found += part
        return found

    async def write(self, answer: Callable[[], Result]) -> Result:
        """Write an answer on a thread: a large one takes long enough for others to notice."""
        return await self._on_thread(answer)

    async def _on_thread(self, step: Callable[[], Result]) -> Result:
        """Do something on one of the threads that tokenize."""
        try:
            doing = asyncio.get_running_loop().run_in_executor(self._pool, step)
        except RuntimeError:  # the threads have been ended
            raise NotReady("the server is stopping") from None
        return await self._bounded(doing)

    def submit(self, plans: Sequence[Plan], *, urgent: bool = False) -> None:
        """Queue plans for the device.

        Raises:
            Overloaded: if too many tokens are waiting.
            NotReady: if there is no device thread.
        """
        self._job = self._scheduler.submit(plans, urgent=urgent)

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Give what became of each document that was submitted, in order, as it comes.

        Raises:
            BackendError: if the device fails.
            NotReady: if its thread ends.
            DeadlineExceeded: if there is no time left.
            ClientGone: if nobody waits for them any longer.
        """
        if self._job is None:
            return
        coming = self._job.outcomes()
        while (outcome := await self._bounded(_next(coming))) is not None:
            self._count(outcome)
            yield outcome

    async def all_outcomes(self) -> list[Outcome]:
        """Wait for all of them; see `outcomes`."""
        return [outcome async for outcome in self.outcomes()]

    async def _bounded(self, step: "asyncio.Future[Result] | Coroutine[Any, Any, Result]") -> Result:
        """Await something, but neither beyond the deadline nor for a client that has left."""
        working = asyncio.ensure_future(step)
        if self._watching is None:
            self._watching = asyncio.ensure_future(_gone(self._request))
        try:
            left = max(0.0, self._deadline - asyncio.get_running_loop().time())
            await asyncio.wait({working, self._watching}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if working.cancelled():  # the threads have been ended
                raise NotReady("the server is stopping")
            if working.done():
                return working.result()
            if self._watching.done():
                raise ClientGone("the client closed the connection")
            self._metrics.rejected.labels("deadline").inc()
            raise DeadlineExceeded(f"it took longer than request_timeout, {self._timeout:g} s")
        finally:
            working.cancel()

    def _count(self, outcome: Outcome) -> None:
        """Tell the metrics of a document."""
        if isinstance(outcome, EmbeddedDocument):
            self._metrics.chunks.inc(len(outcome.chunks))
            self._metrics.windowed.inc(outcome.mode == "late" and outcome.windows > 1)
        elif isinstance(outcome, FailedDocument) and isinstance(outcome.error, NonFiniteVector):
            self._metrics.nonfinite.inc()


async def _next(outcomes: AsyncIterator[Outcome]) -> Outcome | None:
    """Give the next outcome; None after the last."""
    return await anext(outcomes, None)


def _slice(plans: Iterator[Plan]) -> tuple[list[Plan], bool]:
    """Make plans for a little while, and tell whether those were all."""
    found: list[Plan] = []
    until = time.perf_counter() + _SLICE_SECONDS
    for plan in plans:
        found.append(plan)
        if time.perf_counter() > until:
            return found, False
    return found, True


def _timed(step: Callable[[], Result]) -> tuple[float, float, Result]:
    """Do something, and say when that began and ended."""
    begun = time.perf_counter()
    result = step()
    return begun, time.perf_counter(), result


async def _gone(request: Request) -> None:
    """Return once the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

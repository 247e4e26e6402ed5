"""From the plans of a request to its outcomes: admission, threads that tokenize, the device."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request

from late_chunking import Document, FailedDocument, LateChunker
from late_chunking.embedder import Outcome
from late_chunking.errors import EmptyInput, InvalidParameter
from late_chunking.plans import Plan
from late_chunking.request import Request as EmbeddingRequest
from late_chunking.vectors import shortened
from late_chunking.writer import ContextWriter
from server.errors import BackendError, ClientGone, NotReady, Overloaded, RequestError, TooManyDocuments, UnknownModel
from server.exchange import TIMINGS
from server.scheduler import Scheduler, Timings
from server.settings import ServerSettings

Result = TypeVar("Result")


class Service:
    """What the routes share: one model, one device thread, a few threads that tokenize.

    Attributes:
        settings: how the service is run.
        chunker: the model.
        info: what was found in the model's folder.
        writer: writes the contexts of chunks, if an endpoint is set for that.
        started: when, in seconds since 1970.
    """

    def __init__(self, settings: ServerSettings, chunker: LateChunker) -> None:
        """Put the parts together; `start` begins the threads."""
        self.settings = settings
        self.chunker = chunker
        self.info = chunker.info()
        self.started = int(time.time())
        self.writer = settings.context_writer()
        self._scheduler = Scheduler(chunker.run, chunker.batch_tokens)
        self._pool = ThreadPoolExecutor(settings.tokenization_workers, thread_name_prefix="tokenization")
        self._admitted = 0
        self._touched = False

    async def start(self) -> None:
        """Start the device thread, and touch the device so that the first request finds it warm."""
        self._scheduler.start()
        try:
            await self.check_ready()
        except RequestError:
            # Said by /readyz, which tries again; a server that serves nothing but its state is
            # easier to examine than one that has ended. The scheduler has logged why.
            return

    async def stop(self) -> None:
        """End the threads; requests that still wait fail as not ready."""
        await self._scheduler.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def check_ready(self) -> None:
        """Pass if the device has embedded something and its thread is alive.

        Raises:
            NotReady: if not.
            BackendError: if the device fails on a short text.
        """
        if not self._touched:
            plans = self.chunker.plan_texts(["ready"])
            completed = await self._scheduler.embed(plans)
            self._touched = not any(isinstance(outcome, FailedDocument) for outcome in completed.outcomes)
        if not self._touched:
            raise NotReady("the device does not embed")
        if not self._scheduler.alive:
            raise NotReady("the device thread is not running")

    def check_model(self, name: str | None) -> None:
        """Pass if a request asks for the model that is served, or for none.

        Raises:
            UnknownModel: if it asks for another.
        """
        names = (self.settings.model_name, self.settings.model_id)
        if name is not None and name not in names:
            raise UnknownModel(f"the model {name!r} is not served here; this server has {names[0]!r}", param="model")

    def check_count(self, count: int, field: str) -> None:
        """Pass if a request holds at least one document, and not too many.

        Raises:
            EmptyInput: if it holds none.
            TooManyDocuments: if it holds too many.
        """
        limit = self.settings.max_client_batch_size
        if not count:
            raise EmptyInput(f"{field} is empty: at least one is needed")
        if count > limit:
            raise TooManyDocuments(
                f"{field} has {count} entries, more than max_client_batch_size, {limit}", param=field
            )

    def check_writer(self) -> ContextWriter:
        """Give what writes contexts.

        Raises:
            InvalidParameter: if no endpoint is set for that.
        """
        if self.writer is None:
            raise InvalidParameter("written_context: this server has no language model; it is started with CONTEXT_URL")
        return self.writer

    def check_pooled(self, tokens: int) -> None:
        """Pass if the chunks of a request hold no more tokens in all than it may ask for.

        Raises:
            InvalidParameter: if they do: large overlaps multiply the work.
        """
        limit = 4 * self.chunker.settings.max_pooled_tokens
        if tokens > limit:
            raise InvalidParameter(
                f"the request's chunks hold more than {limit} tokens in all; let them overlap less, or send fewer"
            )

    def check_dimensions(self, dimensions: int | None) -> None:
        """Pass if vectors can be shortened so, before they are made.

        Raises:
            InvalidParameter: if not.
        """
        shortened(np.zeros((0, self.info.dimensions), dtype=np.float32), dimensions)

    def plan(self, documents: Sequence[Document], asked: EmbeddingRequest) -> list[Plan]:
        """Plan all documents of a request. For a thread that tokenizes.

        Raises:
            InvalidInput: naming the document, if one is to blame.
        """
        plans: list[Plan] = []
        pooled = 0
        for index, document in enumerate(documents):
            plans.append(self.chunker.planner.plan(document, asked, index))
            pooled += int(plans[-1].pooled.sum())
            self.check_pooled(pooled)
        return plans

    async def embed(self, request: Request, plan: Callable[[], Sequence[Plan]]) -> tuple[Outcome, ...]:
        """Plan and run the documents of one request.

        Args:
            request: gets the times; if its client leaves, the work is given up.
            plan: makes all plans of the request; runs on a thread of its own.

        Returns:
            An outcome a plan, in order.

        Raises:
            InvalidInput: what `plan` raises; nothing has been run then.
            Overloaded: at once, if too many requests are in work.
            BackendError: if the device fails.
            NotReady: if there is no device thread.
            ClientGone: if the client has left.
        """
        with self._admission():
            return await _unless_gone(request, self._embed(request, plan))

    async def prepare(self, work: Callable[[], Result]) -> Result:
        """Do work on a thread that tokenizes, counted as a request in work.

        Raises:
            InvalidInput: what `work` raises.
            Overloaded: at once, if too many requests are in work.
        """
        with self._admission():
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _embed(self, request: Request, plan: Callable[[], Sequence[Plan]]) -> tuple[Outcome, ...]:
        """Plan, run, and note the times."""
        arrived = time.perf_counter()
        begun, ended, plans = await asyncio.get_running_loop().run_in_executor(self._pool, _timed, plan)
        try:
            completed = await self._scheduler.embed(plans)
        except BackendError:
            # The device may be gone for good: whoever asks whether it is ready asks it again.
            self._touched = False
            raise
        timings = Timings(ended - begun, begun - arrived + completed.queue, completed.inference)
        setattr(request.state, TIMINGS, timings)
        return completed.outcomes

    @contextmanager
    def _admission(self) -> Iterator[None]:
        """Count a request as in work."""
        limit = self.settings.max_concurrent_requests
        if self._admitted >= limit:
            raise Overloaded(f"{self._admitted} requests are in work, as many as max_concurrent_requests, {limit}")
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1


def service_of(request: Request) -> Service:
    """Give the service of the application that a request was sent to."""
    service: Service = request.app.state.service
    return service


def _timed(plan: Callable[[], Sequence[Plan]]) -> tuple[float, float, Sequence[Plan]]:
    """Plan, and say when that began and ended."""
    begun = time.perf_counter()
    plans = plan()
    return begun, time.perf_counter(), plans


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Await work, but cancel it once the client has closed the connection.

    The server tells a handler of that only if it is asked.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone("the client closed the connection")
    finally:
        working.cancel()
        watching.cancel()


async def _gone(request: Request) -> None:
    """Return once the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

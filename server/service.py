"""What the routes share: one model, one device thread, a few threads that tokenize."""

import gc
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from starlette.requests import Request

from late_chunking import Document, LateChunker
from late_chunking.errors import EmptyInput, InvalidParameter
from late_chunking.plans import Draft, Plan
from late_chunking.request import Request as EmbeddingRequest
from late_chunking.vectors import shortened
from late_chunking.writer import ContextWriter
from server.errors import NotReady, TooManyDocuments, UnknownModel
from server.life import Life
from server.metrics import Metrics
from server.scheduler import Scheduler
from server.settings import ServerSettings
from server.work import Work

_WRITING_THREADS: Final = 4
_HANGS: Final = 5  # times ready_timeout without an answer, and the device is given up


class Service:
    """The parts of a server, and the checks that its routes share.

    Attributes:
        settings: how the service is run.
        chunker: the model.
        life: where the process stands.
        metrics: what Prometheus is told.
        info: what was found in the model's folder.
        writer: writes the contexts of chunks, if an endpoint is set for that.
        started: when, in seconds since 1970.
    """

    def __init__(self, settings: ServerSettings, chunker: LateChunker, life: Life, metrics: Metrics) -> None:
        """Put the parts together; `start` begins the threads."""
        self.settings = settings
        self.chunker = chunker
        self.life = life
        self.metrics = metrics
        self.info = chunker.info()
        self.started = int(time.time())
        self.writer = settings.context_writer()
        self._scheduler = Scheduler(chunker, settings.max_queued_tokens, metrics, life.die)
        life.give_up = self._scheduler.close
        life.check = self._check_device
        self._pool = ThreadPoolExecutor(settings.tokenization_workers, thread_name_prefix="tokenization")
        # Apart: who waits for a language model must not keep others from being tokenized.
        self._writing = ThreadPoolExecutor(_WRITING_THREADS, thread_name_prefix="writing")
        metrics.watch("lc_queue_tokens", "Tokens that wait, or are being read.", lambda: self._scheduler.queued_tokens)
        metrics.watch("lc_requests_in_work", "Requests in work.", lambda: life.in_work)

    def start(self) -> None:
        """Start the device thread, which first reads a full batch, so that the first request finds it warm."""
        gc.freeze()  # what is loaded stays, and need not be looked through again and again
        self._scheduler.start()

    async def stop(self) -> None:
        """End the threads; requests that still wait fail as not ready."""
        await self._scheduler.stop()
        for pool in (self._pool, self._writing):
            pool.shutdown(wait=False, cancel_futures=True)
        if self.writer is not None:
            self.writer.close()

    def work(self, request: Request, *, writes: bool = False) -> Work:
        """Begin the work for a request; whether a language model writes for it, too."""
        pool = self._writing if writes else self._pool
        return Work(request, self._scheduler, pool, self.metrics, self.settings.request_timeout)

    def _check_device(self) -> None:
        """End the process if the device has owed an answer for far too long."""
        if self._scheduler.overdue > _HANGS * self.settings.ready_timeout:
            self.life.die()

    def check_ready(self) -> None:
        """Pass if requests sent now will be worked on.

        Raises:
            NotReady: if not, saying why.
        """
        if self.life.draining:
            raise NotReady("the server is stopping")
        if not self._scheduler.alive:
            raise NotReady("the device thread is not running")
        if not self._scheduler.warm:
            raise NotReady("the device has not read anything yet")
        if self._scheduler.overdue > self.settings.ready_timeout:
            raise NotReady(
                f"the device has owed an answer for {self._scheduler.overdue:.0f} s, more than ready_timeout, "
                f"{self.settings.ready_timeout:g} s"
            )

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

    def check_dimensions(self, dimensions: int | None) -> None:
        """Pass if vectors can be shortened so, before they are made.

        Raises:
            InvalidParameter: if not.
        """
        shortened(np.zeros((0, self.info.dimensions), dtype=np.float32), dimensions)

    def plans(self, documents: Iterable[Document], asked: EmbeddingRequest) -> Iterator[Plan]:
        """Plan the documents of a request, one after the other. For a thread that tokenizes.

        Raises:
            InvalidInput: naming the document, if one is to blame.
        """
        limit = 4 * self.chunker.settings.max_pooled_tokens
        pooled = 0
        for index, document in enumerate(documents):
            plan = self.chunker.planner.plan(document, asked, index)
            if isinstance(plan, Draft) and asked.context is not None:
                raise InvalidParameter(
                    f"document {index} ({document.id!r}): written_context needs chunks that are known before the "
                    "document is read; strategies that cut by meaning know them only after"
                )
            pooled += int(plan.pooled.sum())
            if pooled > limit:
                raise InvalidParameter(
                    f"the request's chunks hold more than {limit} tokens in all; let them overlap less, or send fewer"
                )
            yield plan


def service_of(request: Request) -> Service:
    """Give the service of the application that a request was sent to."""
    service: Service = request.app.state.service
    return service

"""The whole way: documents → plans → batches → token vectors → sums over spans → vectors."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Self, overload

import numpy as np

from late_chunking.ahead import document_of, plan_ahead
from late_chunking.boundaries import Chunking
from late_chunking.documents import Chunk, Document, EmbeddedDocument, FailedDocument, Span
from late_chunking.encoding.device import default_batch_tokens
from late_chunking.encoding.head import Head
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import Cost, pack
from late_chunking.encoding.reader import Reader
from late_chunking.encoding.selfcheck import Choice, choose_encoder
from late_chunking.encoding.staging import staging_for
from late_chunking.errors import (
    DeviceError,
    EmptyInput,
    InvalidParameter,
    NonFiniteVector,
)
from late_chunking.info import ModelInfo
from late_chunking.pending import DocumentQueue, PendingDocument
from late_chunking.planning import Planner
from late_chunking.plans import Draft, Plan
from late_chunking.request import Request
from late_chunking.settings import DEFAULT_MODEL, Settings, make_settings
from late_chunking.vectors import Vectors, blended

Outcome = EmbeddedDocument | FailedDocument

ON_ERROR: Final = ("raise", "yield")


class LateChunker:
    """Embeds documents chunk by chunk, each chunk's vector having read the whole document.

    Threads may share one: nothing it holds changes after it is made.
    """

    def __init__(self, model: str | Settings = DEFAULT_MODEL, **options: Any) -> None:  # noqa: ANN401 - see Settings
        """Load a model.

        Args:
            model: ``"embedded"`` or ``"embedded-late"``, or the folder or hub id of a model or an adapter; or all
                settings at once.
            **options: the other fields of `Settings`, beside a name.

        Raises:
            ModelError: if the model cannot be found or used.
            InvalidParameter: if an option is unknown or wrong.
        """
        settings = make_settings(model, options)
        planner = Planner.load(settings)
        network = Network.load(
            planner.folder,
            device=settings.device,
            dtype=settings.dtype,
            trust_remote_code=settings.trust_remote_code,
        )
        self._put_together(planner, network, choose_encoder(network, planner.folder.window, compiled=settings.compile))

    @classmethod
    def around(cls, planner: Planner, network: Network, choice: Choice) -> Self:
        """Embed with a network that is loaded already, and perhaps still changing."""
        chunker = cls.__new__(cls)
        chunker._put_together(planner, network, choice)
        return chunker

    def _put_together(self, planner: Planner, network: Network, choice: Choice) -> None:
        """Make what is needed beside the network."""
        self.settings = planner.settings
        self.planner = planner
        self.network = network
        self.head = Head.load(planner.folder, network.hidden_size, normalize=self.settings.normalize)
        self.choice = choice
        self.reader = Reader(self.choice.encoder, staging_for(self.network.device))
        self.cost = Cost.of(self.network.config)
        self.batch_tokens = 1  # every sequence goes alone
        if not self.settings.deterministic:
            self.batch_tokens = self.settings.max_batch_tokens or default_batch_tokens(self.network.device, self._probe)

    def embed(
        self,
        document: Document | str,
        *,
        strategy: Chunking | None = None,
        spans: Iterable[tuple[int, int]] | None = None,
        **options: Any,  # noqa: ANN401 - see Request, and the strategies
    ) -> EmbeddedDocument:
        """Embed one document.

        Args:
            document: a `Document`, or its text.
            strategy: a name, a mapping of a name and options, a configured strategy, a function
                ``str → (start, end) pairs``, or a list of these, all pooled from one pass.
            spans: boundaries of the caller's own, instead of a strategy.
            **options: fields of `Request`, such as ``mode`` and ``on_overflow``; all others are
                options of the named strategy, such as ``size`` and ``overlap``.

        Raises:
            InvalidInput: if the document, a span or an option is wrong.
            DeviceError: if the device fails on it.
        """
        request = Request.of(strategy, options, spans=spans)
        given = document_of(document)
        if spans is not None and given.spans is not None:
            raise InvalidParameter(f"document {given.id!r} has spans of its own; give none with the call")
        return self._one(self.planner.plan(given, request))

    def chunk(
        self,
        document: Document | str,
        *,
        strategy: Chunking | None = None,
        **options: Any,  # noqa: ANN401
    ) -> tuple[Chunk, ...]:
        """Cut one document, and read it only if a strategy cuts by meaning. Options are as for `embed`."""
        return self.cut(document_of(document), Request.of(strategy, options))

    def cut(self, document: Document, request: Request, index: int = 0) -> tuple[Chunk, ...]:
        """Cut one document of a request; see `chunk`."""
        if self.planner.waits(document, request):
            return self._one(self.planner.plan(document, request, index)).chunks
        return self.planner.chunk(document, request, index)

    @overload
    def embed_many(
        self,
        documents: Iterable[Document | str],
        *,
        strategy: Chunking | None = None,
        on_error: Literal["raise"] = "raise",
        **options: Any,  # noqa: ANN401
    ) -> Iterator[EmbeddedDocument]: ...

    @overload
    def embed_many(
        self,
        documents: Iterable[Document | str],
        *,
        strategy: Chunking | None = None,
        on_error: str,
        **options: Any,  # noqa: ANN401
    ) -> Iterator[Outcome]: ...

    def embed_many(
        self,
        documents: Iterable[Document | str],
        *,
        strategy: Chunking | None = None,
        on_error: str = "raise",
        **options: Any,
    ) -> Iterator[Outcome]:
        """Embed a stream of documents, in order, holding only some batches' worth at a time.

        Args:
            documents: any iterable; each may carry its own spans or chunking.
            strategy: as for `embed`.
            on_error: ``"raise"`` at a document that fails, or ``"yield"`` a `FailedDocument`
                in its place. What the iterable itself raises ends the stream either way.
                Functions of the caller's (a strategy, a unit, a context) are called on a thread
                that plans ahead.
            **options: as for `embed`.

        Raises:
            InvalidParameter: at once, if an option is wrong.
        """
        check_stream(documents, on_error)
        return self._stream(documents, Request.of(strategy, options), raising=on_error == "raise")

    def embed_query(self, text: str, *, on_overflow: str = "window") -> Vectors:
        """Embed a query, with the model's query prompt. Gives float32 [D]."""
        if isinstance(text, str) and not text.strip():
            raise EmptyInput("the query is empty or white space: it has no vector")
        vector: Vectors = self.embed_texts([text], input_type="query", on_overflow=on_overflow)[0]
        return vector

    def embed_texts(
        self, texts: Sequence[str], *, input_type: str | None = None, on_overflow: str = "window"
    ) -> Vectors:
        """Embed each text as a whole, as the model's ordinary pooling does.

        Args:
            texts: at least one, each with a character that is not white space.
            input_type: which prompt to use: ``"query"``, ``"document"`` or none.
            on_overflow: as for `embed`.

        Returns:
            float32 [N, D].

        Raises:
            EmptyInput: if there is no text, or one is empty.
        """
        plans = list(self.plan_texts(texts, input_type=input_type, on_overflow=on_overflow))
        return np.concatenate([self._raised(outcome).vectors for outcome in self.run(plans)])

    def plan_texts(
        self, texts: Sequence[str], *, input_type: str | None = None, on_overflow: str = "window"
    ) -> Iterator[Plan]:
        """Plan each text as one chunk that holds it whole, one after the other; see `embed_texts`."""
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise InvalidParameter(f"a list of texts is needed, got {texts!r:.80}")
        if not texts:
            raise EmptyInput("a list of at least one text is needed, got an empty one")
        request = Request.of(_whole, {"input_type": input_type, "on_overflow": on_overflow}, noun="text")
        for index, text in enumerate(texts):
            document = document_of(text, f"text {index}: ")
            if not document.text.strip():
                raise EmptyInput(f"text {index} is empty or white space: it has no vector")
            yield self.planner.plan(document, request, index)

    def run(self, plans: Iterable[Plan | FailedDocument]) -> Iterator[Outcome]:
        """Send planned documents through the encoder, in order, in shared batches.

        A document's vectors depend on it and the model alone, not on what shares its batch. A
        document that fails takes its place as a `FailedDocument`, as do those that are given.
        """
        queue = DocumentQueue(plans, self.planner)
        for batch, results in self.reader.read_all(pack(queue.sequences(), self.batch_tokens, self.cost)):
            for item, result in zip(batch, results, strict=True):
                queue.add(item, result)
            yield from map(self.finish, queue.done())
        yield from map(self.finish, queue.done())

    def finish(self, pending: PendingDocument | FailedDocument) -> Outcome:
        """Turn the sums of a document into its vectors."""
        if isinstance(pending, FailedDocument):
            return pending
        plan = pending.plan
        named = f"document {plan.index} ({plan.document.id!r})"
        if isinstance(plan, Draft) or pending.error is not None:
            error = pending.error or DeviceError("it was not read")
            if isinstance(error, DeviceError):
                error = type(error)(f"{named}: {error}")
            return FailedDocument(plan.document.id, plan.index, error)
        if not plan.chunks:
            vectors: Vectors = np.zeros((0, self.head.dimensions), dtype=np.float32)
        else:
            vectors = self.head.finish(pending.sums / plan.pooled[:, None])  # [R, D]
        if plan.request.mode == "blend":
            late, naive = np.split(vectors, 2)
            vectors = blended(late, naive, plan.request.blend_weight, normalize=self.head.normalize)
        if not np.isfinite(vectors).all():
            broken = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            nonfinite = NonFiniteVector(f"{named}: the vector of chunk {broken} is not finite")
            return FailedDocument(plan.document.id, plan.index, nonfinite)
        return EmbeddedDocument(
            plan.document, plan.index, plan.chunks, vectors, plan.token_count, plan.windows, plan.request.mode
        )

    def warm_up(self) -> None:
        """Read one batch as large as they come, so that no document waits for the device to get ready."""
        self._probe(max(self.batch_tokens, self.planner.folder.window))

    def info(self) -> ModelInfo:
        """Say what was found in the model folder, and how the model is run."""
        return ModelInfo.of(self.planner, self.network, self.head, self.choice)

    def _probe(self, tokens: int) -> None:
        """Read about so many tokens of nothing in particular, in one batch."""
        length = min(tokens, self.planner.folder.window, self.settings.max_document_tokens)
        sequence = next(self.plan_texts(["a " * length])).sequences[0]
        self.reader.read([sequence] * max(1, tokens // len(sequence)))

    def _stream(self, documents: Iterable[Document | str], request: Request, *, raising: bool) -> Iterator[Outcome]:
        """Plan and run a stream of documents."""
        for outcome in self.run(plan_ahead(self.planner, enumerate(documents), request)):
            yield self._raised(outcome) if raising else outcome

    def _one(self, plan: Plan) -> EmbeddedDocument:
        """Run a single plan."""
        (outcome,) = self.run([plan])
        return self._raised(outcome)

    @staticmethod
    def _raised(outcome: Outcome) -> EmbeddedDocument:
        """Raise the error of a document that failed."""
        if isinstance(outcome, FailedDocument):
            raise outcome.error
        return outcome


def check_stream(documents: Any, on_error: str) -> None:  # noqa: ANN401 - a caller's, unchecked
    """Pass if documents are several, and it is clear what to do where one fails.

    Raises:
        InvalidParameter: if not.
    """
    if isinstance(documents, str | Document) or not isinstance(documents, Iterable):
        raise InvalidParameter(f"documents must be several, got {documents!r:.80}; embed takes a single one")
    if on_error not in ON_ERROR:
        raise InvalidParameter(f"on_error must be one of {', '.join(ON_ERROR)}, got {on_error!r}")


def _whole(text: str) -> list[Span]:
    """Give the span of a whole text."""
    return [Span(0, len(text))]

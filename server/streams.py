"""Answers that are sent document by document, as each is done: lines of JSON, or Arrow record batches."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final, Protocol

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from late_chunking import FailedDocument, LateChunkingError
from late_chunking.arrow import chunk_batch, chunk_schema
from late_chunking.dependencies import require
from late_chunking.embedder import Outcome
from late_chunking.records import Record, document_record
from late_chunking.vectors import shortened
from server.errors import ClientGone, RequestError, broken_off, failure
from server.work import Work

NDJSON: Final = "application/x-ndjson"
ARROW: Final = "application/vnd.apache.arrow.stream"


class Writer(Protocol):
    """Writes a stream, piece by piece."""

    media_type: str

    def begin(self) -> bytes:
        """Give what comes before the first document."""
        ...

    def document(self, outcome: Outcome) -> bytes:
        """Write what became of a document."""
        ...

    def broken(self, error: Exception) -> bytes:
        """Write that no more documents come, and why."""
        ...

    def end(self) -> bytes:
        """Give what comes after the last."""
        ...


class Lines:
    """A line of JSON a document, each as an entry of `data` in an ordinary answer."""

    media_type = NDJSON

    def __init__(self, entry: Callable[[Outcome], Record]) -> None:
        """Take what writes an entry."""
        self._entry = entry

    def begin(self) -> bytes:
        """Nothing comes before the first line."""
        return b""

    def document(self, outcome: Outcome) -> bytes:
        """Write a line."""
        return orjson.dumps(self._entry(outcome), option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)

    def broken(self, error: Exception) -> bytes:
        """Write a last line, which names no document."""
        return orjson.dumps(broken_off(error), option=orjson.OPT_APPEND_NEWLINE)

    def end(self) -> bytes:
        """Nothing comes after the last line."""
        return b""


class Batches:
    """A record batch a document, a row a chunk, in the columns of the Parquet files.

    What is known of the document itself (``index``, ``id``, ``tokens``, ``windows``), or why it
    failed (``error``, ``error_type``), is JSON in the batch's own metadata, under ``document``.
    """

    media_type = ARROW

    def __init__(self, model: str, dimensions: int, *, include_text: bool) -> None:
        """Begin a stream.

        Args:
            model: the model's name.
            dimensions: of the vectors.
            include_text: whether chunks carry their text.

        Raises:
            MissingDependency: without pyarrow.
        """
        arrow = require("pyarrow", purpose="Arrow streams", extra="arrow")
        self._model, self._dimensions, self._include_text = model, dimensions, include_text
        self._schema = chunk_schema(dimensions)
        self._buffer = _Buffer()
        self._writer: Any = arrow.ipc.new_stream(self._buffer, self._schema)
        self._empty = arrow.RecordBatch.from_pylist([], schema=self._schema)

    def begin(self) -> bytes:
        """Give the schema."""
        return self._buffer.take()

    def document(self, outcome: Outcome) -> bytes:
        """Write a batch."""
        if isinstance(outcome, FailedDocument):
            return self._write(self._empty, failure(outcome))
        vectors = shortened(outcome.vectors, self._dimensions)  # [C, D]
        batch = chunk_batch(self._schema, outcome, vectors, self._model, include_text=self._include_text)
        about = document_record(
            outcome.document, outcome.index, [], tokens=outcome.token_count, windows=outcome.windows
        )
        del about["chunks"]  # the rows
        return self._write(batch, about)

    def broken(self, error: Exception) -> bytes:
        """Write an empty batch that says why."""
        return self._write(self._empty, broken_off(error))

    def end(self) -> bytes:
        """Write the mark of the end."""
        self._writer.close()
        return self._buffer.take()

    def _write(self, batch: Any, about: Record) -> bytes:  # noqa: ANN401 - pyarrow is optional
        """Write a batch with its metadata."""
        self._writer.write_batch(batch, custom_metadata={"document": orjson.dumps(about)})
        return self._buffer.take()


class Streamed(Response):
    """Sends documents as they are done, and ends the request's work in any case."""

    def __init__(self, work: Work, writer: Writer) -> None:
        """Take over the work of a request, whose plans are submitted."""
        super().__init__(media_type=writer.media_type)
        del self.headers["content-length"]  # nobody knows it
        self._work = work
        self._writer = writer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, once its first document is done: until then, errors are ordinary ones."""
        try:
            coming = self._work.outcomes()
            first = await anext(coming)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for piece in self._pieces(first, coming):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._work.close()

    async def _pieces(self, first: Outcome, coming: AsyncIterator[Outcome]) -> AsyncIterator[bytes]:
        """Write the answer piece by piece."""
        yield self._writer.begin()
        try:
            outcome: Outcome | None = first
            while outcome is not None:
                yield await self._work.write(partial(self._writer.document, outcome))
                outcome = await anext(coming, None)
        except ClientGone:
            return
        except (RequestError, LateChunkingError) as error:
            yield self._writer.broken(error)
        yield self._writer.end()


class _Buffer:
    """A file that is emptied as it is written."""

    closed = False

    def __init__(self) -> None:
        """Begin empty."""
        self._pieces: list[bytes] = []

    def write(self, piece: Any) -> int:  # noqa: ANN401 - anything with bytes in it
        """Keep a piece."""
        self._pieces.append(bytes(piece))
        return len(self._pieces[-1])

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        """Give what was written since the last time."""
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def wanted(accept: str) -> str | None:
    """Tell which stream a client asks for in its Accept header; None for an ordinary answer."""
    asked = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return next((kind for kind in (NDJSON, ARROW) if kind in asked), None)

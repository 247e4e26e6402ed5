"""From an exception to an answer: one table, with a column for each dialect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from late_chunking import FailedDocument
from late_chunking import errors as library
from server.answers import JsonAnswer

_LONGEST_MESSAGE: Final = 1_000
_RETRY_SECONDS: Final = 1
_INTERNAL: Final = "an unexpected error; the server's log says more under this request's id"


class RequestError(Exception):
    """Root of what is wrong with a request or with the server, rather than with a text.

    Attributes:
        param: the field of the body that is to blame, if one is.
        headers: what the answer must carry.
    """

    def __init__(self, message: str, *, param: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Say what is wrong, with the value and the limit."""
        super().__init__(message)
        self.param = param
        self.headers = dict(headers or {})


class MalformedRequest(RequestError):
    """A body that is not JSON, or fields that are missing, unknown or of a wrong type."""


class RefusedValue(RequestError):
    """A field of the right type whose value is not one that it may have."""


class Unauthorized(RequestError):
    """No key, or a wrong one."""


class UnknownModel(RequestError):
    """A model that this server does not serve."""


class UnknownRoute(RequestError):
    """No route at this path."""


class MethodNotAllowed(RequestError):
    """A route that does not take this method."""


class PayloadTooLarge(RequestError):
    """More bytes than a body may have."""


class TooManyDocuments(RequestError):
    """More documents than a request may have."""


class UnknownEncoding(RequestError):
    """A body that is packed in a way that is not known."""


class UploadTimeout(RequestError):
    """A body that took too long to arrive."""


class Overloaded(RequestError):
    """As many requests in work, or tokens waiting, as there may be."""

    def __init__(self, message: str, *, retry_after: int = _RETRY_SECONDS) -> None:
        """Say what is too much, and after how many seconds there may be room."""
        super().__init__(message, headers={"Retry-After": str(retry_after)})


class DeadlineExceeded(RequestError):
    """A request that took longer than any may."""


class ClientGone(RequestError):
    """The client closed the connection before its answer."""


class BackendError(RequestError):
    """The encoder failed in a way that no document is to blame for."""


class NotReady(RequestError):
    """The server cannot embed: it is starting, stopping, or has lost its device thread."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one kind of error is answered.

    Attributes:
        error_type: its name for programs.
        native: status on this project's own routes.
        openai: status on the routes of OpenAI's shape.
        openai_type: OpenAI's name for its family.
        retry: whether the same request may succeed a little later.
    """

    error_type: str
    native: int
    openai: int
    openai_type: str = "invalid_request_error"
    retry: bool = False


TABLE: Final[dict[type[Exception], Row]] = {
    MalformedRequest: Row("malformed", 400, 400),
    library.EmptyInput: Row("empty", 400, 400),
    Unauthorized: Row("unauthorized", 401, 401, "authentication_error"),
    UnknownModel: Row("model_not_found", 404, 404),
    UnknownRoute: Row("not_found", 404, 404),
    MethodNotAllowed: Row("method_not_allowed", 405, 405),
    UploadTimeout: Row("upload_timeout", 408, 408),
    PayloadTooLarge: Row("payload_too_large", 413, 413),
    TooManyDocuments: Row("too_many_documents", 413, 413),
    UnknownEncoding: Row("unknown_encoding", 415, 415),
    library.InvalidSpan: Row("invalid_span", 422, 400),
    library.DocumentTooLong: Row("document_too_long", 422, 400),
    library.UnknownStrategy: Row("unknown_strategy", 422, 400),
    library.InvalidParameter: Row("invalid_parameter", 422, 400),
    RefusedValue: Row("invalid_parameter", 422, 400),
    library.InvalidDocument: Row("invalid_document", 422, 400),
    library.InvalidInput: Row("invalid_input", 422, 400),
    Overloaded: Row("overloaded", 429, 429, "rate_limit_error", retry=True),
    ClientGone: Row("client_gone", 499, 499),
    library.NonFiniteVector: Row("non_finite_vector", 500, 500, "server_error"),
    BackendError: Row("backend", 500, 500, "server_error"),
    Exception: Row("backend", 500, 500, "server_error"),
    library.OutOfDeviceMemory: Row("out_of_device_memory", 503, 503, "server_error", retry=True),
    library.ContextRefused: Row("context_endpoint", 502, 502, "server_error"),
    library.ContextError: Row("context_endpoint", 503, 503, "server_error", retry=True),
    DeadlineExceeded: Row("deadline_exceeded", 503, 503, "server_error", retry=True),
    NotReady: Row("not_ready", 503, 503, "server_error", retry=True),
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How errors are said on a family of routes.

    Attributes:
        name: of the column in the table.
        status: picks the status from a row.
        body: makes the body from a row, a message and the field to blame.
    """

    name: str
    status: Callable[[Row], int]
    body: Callable[[Row, str, str | None], dict[str, Any]]


NATIVE: Final = Dialect(
    "native",
    lambda row: row.native,
    lambda row, message, _: {"error": message, "error_type": row.error_type},
)
OPENAI: Final = Dialect(
    "openai",
    lambda row: row.openai,
    lambda row, message, param: {
        "error": {"message": message, "type": row.openai_type, "param": param, "code": row.error_type}
    },
)
_DIALECTS: Final = {"/v1/embeddings": OPENAI, "/v1/models": OPENAI}


def dialect_of(path: str) -> Dialect:
    """Give the dialect of a path: unknown paths speak the native one."""
    return _DIALECTS.get(path.rstrip("/"), NATIVE)


def row_of(error: Exception) -> Row:
    """Give the table's row for an error: that of its class, else of the nearest class above."""
    return next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)


def message_of(error: Exception) -> str:
    """Give an error's message for a client: one line, of a bounded length.

    Errors that this project did not raise on purpose are not quoted: what they say may hold
    anything, a document's text too.
    """
    if not isinstance(error, RequestError | library.LateChunkingError):
        return _INTERNAL
    message = " ".join(str(error).split())
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"


def error_answer(error: Exception, path: str) -> JsonAnswer:
    """Answer an error in the dialect of the path that was called."""
    row, dialect = row_of(error), dialect_of(path)
    param, headers = None, {}
    if isinstance(error, RequestError):
        param, headers = error.param, error.headers
    if row.retry:
        headers = {"Retry-After": str(_RETRY_SECONDS), **headers}
    return JsonAnswer(dialect.body(row, message_of(error), param), dialect.status(row), headers=headers)


def failure(failed: FailedDocument) -> dict[str, Any]:
    """Write what takes the place of a document that failed on the device."""
    return {"object": "error", "index": failed.index, "id": failed.id, **_said(failed.error)}


def broken_off(error: Exception) -> dict[str, Any]:
    """Write what ends a stream that breaks off."""
    return {"object": "error", **_said(error)}


def _said(error: Exception) -> dict[str, Any]:
    """Say an error as the native routes do."""
    return NATIVE.body(row_of(error), message_of(error), None)


def raise_if_all_failed(outcomes: Sequence[object]) -> None:
    """Raise the error of the first document of a request, if all of them failed."""
    first = outcomes[0]
    if isinstance(first, FailedDocument) and all(isinstance(outcome, FailedDocument) for outcome in outcomes):
        raise first.error

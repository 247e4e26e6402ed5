"""What pydantic and the router found wrong with a request, as one line for its sender."""

from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from server.errors import BackendError, MalformedRequest, MethodNotAllowed, RefusedValue, RequestError, UnknownRoute
from server.schemas.fields import ALTERNATIVES

_LONGEST_VALUE: Final = 80
_WHOLE_BODY: Final = "body"
_VALUE_ERRORS: Final = frozenset({"literal_error"})
_OBJECT_KINDS: Final = frozenset({"model_attributes_type", "model_type", "dict_type"})
# Their messages hold the value, or what matters of it.
_SELF_EXPLAINED: Final = frozenset({"token_ids", "too_deep", "too_long", "too_short"})


def validation_error(error: RequestValidationError) -> RequestError:
    """Turn what a model refused into an error that names the field, not the text in it.

    A field that may have a few values only and has another is a `RefusedValue`; all else, a
    `MalformedRequest`.
    """
    first, *others = error.errors()
    kind = str(first["type"])
    if kind == "json_invalid":
        return MalformedRequest(f"the body is not valid JSON: {first['ctx']['error']} (byte {first['loc'][-1]})")
    if isinstance(error.body, bytes):
        return MalformedRequest("the body is not sent as JSON: set Content-Type: application/json")
    path = _path(first["loc"], error.body)
    if kind == "missing" and not path:
        return MalformedRequest("the body is empty")
    message = f"{path or _WHOLE_BODY}: {_explained(kind, str(first['msg']), first['input'])}"
    if others:
        message += f" (and {len(others)} more)"
    if kind in _VALUE_ERRORS:
        return RefusedValue(message, param=path or None)
    return MalformedRequest(message, param=path or None)


def http_error(error: HTTPException, method: str, path: str) -> RequestError:
    """Turn what the router or the body's parser refused into an error of ours."""
    headers = error.headers or {}
    if error.status_code == 404:
        return UnknownRoute(f"there is no route {path}", headers=headers)
    if error.status_code == 405:
        allowed = headers.get("allow") or headers.get("Allow") or "another method"
        return MethodNotAllowed(f"{method} is not allowed on {path}; it takes {allowed}", headers=headers)
    if error.status_code >= 500:
        return BackendError(str(error.detail), headers=headers)
    return MalformedRequest(str(error.detail), headers=headers)


def shown(value: object) -> str:
    """Give a value for a message: at most 80 characters of it, and of containers only the kind."""
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[:_LONGEST_VALUE] if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _explained(kind: str, message: str, value: object) -> str:
    """Say what is wrong with a value."""
    if kind == "missing":
        return "this field is required"
    if kind == "extra_forbidden":
        return "this field is not known"
    if kind in _OBJECT_KINDS:
        message = "must be an object"
    message = message.replace("Input should be", "must be").replace(" after validation", "")
    message = f"{message[:1].lower()}{message[1:]}"
    return message if kind in _SELF_EXPLAINED else f"{message}, got {shown(value)}"


def _path(location: tuple[int | str, ...], body: object) -> str:
    """Write a place in the body as its sender would: ``documents[0].spans[1][0]``.

    Pydantic also names the alternatives that it tried; those are no keys of the body, and are
    left out. The last part may name a key that is missing.
    """
    here: Any = body
    path = ""
    for depth, part in enumerate(location[1:], start=2):
        if isinstance(part, int) and isinstance(here, list) and part < len(here):
            here = here[part]
            path += f"[{part}]"
        elif (
            isinstance(part, str)
            and part not in ALTERNATIVES
            and isinstance(here, dict)
            and (part in here or depth == len(location))
        ):
            here = here.get(part)
            name = part if len(part) <= _LONGEST_VALUE else f"{part[:_LONGEST_VALUE]}…"
            path += f".{name}" if path else name
    return path

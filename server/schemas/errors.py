"""Bodies of errors, and what the OpenAPI document says of them."""

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field

from server.errors import OPENAI, TABLE, Dialect


class NativeError(BaseModel):
    """An error on this project's own routes."""

    error: str = Field(
        examples=["document 0 ('berlin'): span 1: [34, 99) lies outside the text, which has 71 characters"]
    )
    error_type: str = Field(examples=["invalid_span"])


class OpenAIErrorDetail(BaseModel):
    """What went wrong."""

    message: str = Field(examples=["text 1 is empty or white space: it has no vector"])
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(examples=["input"])
    code: str | None = Field(examples=["empty"])


class OpenAIError(BaseModel):
    """An error on the routes of OpenAI's shape."""

    error: OpenAIErrorDetail


def error_responses(dialect: Dialect, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of a route for the OpenAPI document.

    Args:
        dialect: which the route speaks.
        statuses: which may come; the kinds of error of each are read from the table.
    """
    model = OpenAIError if dialect is OPENAI else NativeError
    responses: dict[int | str, dict[str, Any]] = {"default": {"model": model, "description": "Any other error"}}
    for status in statuses:
        kinds = dict.fromkeys(row.error_type for row in TABLE.values() if dialect.status(row) == status)
        described = f"{HTTPStatus(status).phrase}: {', '.join(kinds)}"
        responses[status] = {"model": model, "description": described}
    return responses

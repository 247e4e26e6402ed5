"""What is asked for: how documents are to be cut and embedded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from late_chunking.boundaries import Chunking, Strategy, make_strategies
from late_chunking.encoding.prompts import check_kind
from late_chunking.errors import InvalidParameter

MODES: Final = ("late", "naive")
DOCUMENT: Final = "document"
ON_OVERFLOW: Final = ("window", "error")


@dataclass(frozen=True, slots=True)
class Request:
    """How documents are to be embedded.

    Attributes:
        strategies: where to cut, unless a document brings its own spans or chunking.
        mode: ``"late"`` reads the whole document, then pools; ``"naive"`` reads each chunk
            alone.
        input_type: which prompt goes before the text: ``"document"``, ``"query"`` or None.
        on_overflow: read a text beyond the window in windows, or refuse it with ``"error"``.
        noun: what errors call what is embedded.
    """

    strategies: tuple[Strategy, ...]
    mode: str = "late"
    input_type: str | None = "document"
    on_overflow: str = "window"
    noun: str = DOCUMENT

    def __post_init__(self) -> None:
        """Check the options."""
        check_kind(self.input_type)
        if self.mode not in MODES:
            raise InvalidParameter(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.on_overflow not in ON_OVERFLOW:
            raise InvalidParameter(f"on_overflow must be one of {', '.join(ON_OVERFLOW)}, got {self.on_overflow!r}")

    @classmethod
    def of(
        cls,
        chunking: Chunking,
        parameters: Mapping[str, Any] | None = None,
        *,
        mode: str = "late",
        input_type: str | None = "document",
        on_overflow: str = "window",
        noun: str = DOCUMENT,
    ) -> Self:
        """Make a request from what a caller gave as strategy, with options for a named one."""
        return cls(make_strategies(chunking, parameters), mode, input_type, on_overflow, noun)

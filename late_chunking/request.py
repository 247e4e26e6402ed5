"""What is asked for: how documents are to be cut and embedded."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from late_chunking.boundaries import CallerSpans, Chunking, Strategy, make_strategies
from late_chunking.boundaries.strategy import is_number
from late_chunking.context import ContextFunction
from late_chunking.encoding.prompts import check_kind
from late_chunking.errors import InvalidParameter

MODES: Final = ("late", "naive", "blend", "contextual")
# The weight of the late vector in mode "blend".
DEFAULT_BLEND_WEIGHT: Final = 0.6
DEFAULT_STRATEGY: Final = "recursive"
DOCUMENT: Final = "document"
ON_OVERFLOW: Final = ("window", "error")


@dataclass(frozen=True, slots=True)
class Request:
    """How documents are to be embedded.

    Attributes:
        strategies: where to cut, unless a document brings its own spans or chunking.
        mode: ``"late"`` reads the whole document, then pools; ``"naive"`` reads each chunk
            alone; ``"blend"`` weighs the two; ``"contextual"`` reads each chunk alone behind a
            header: title, headings, context.
        input_type: which prompt goes before the text: ``"document"``, ``"query"`` or None.
        on_overflow: read a text beyond the window in windows, or refuse it with ``"error"``.
        blend_weight: in mode ``"blend"``, the weight of the late vector, from 0 to 1.
        window_context: whether windows after a document's first begin with its title and the
            headings above them, which are read but not pooled.
        context: in mode ``"contextual"``, a function that gives the context of each chunk,
            instead of the document's own.
        noun: what errors call what is embedded.
    """

    strategies: tuple[Strategy, ...]
    mode: str = "late"
    input_type: str | None = "document"
    on_overflow: str = "window"
    blend_weight: float = DEFAULT_BLEND_WEIGHT
    window_context: bool = False
    context: ContextFunction | None = None
    noun: str = DOCUMENT

    @property
    def reads_documents(self) -> bool:
        """Whether the whole document is read for the vectors."""
        return self.mode in ("late", "blend")

    @property
    def reads_chunks(self) -> bool:
        """Whether each chunk is read alone for the vectors."""
        return self.mode != "late"

    def __post_init__(self) -> None:
        """Check the options."""
        check_kind(self.input_type)
        if self.mode not in MODES:
            raise InvalidParameter(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.on_overflow not in ON_OVERFLOW:
            raise InvalidParameter(f"on_overflow must be one of {', '.join(ON_OVERFLOW)}, got {self.on_overflow!r}")
        if not (is_number(self.blend_weight) and 0 <= self.blend_weight <= 1):
            raise InvalidParameter(f"blend_weight must be a number from 0 to 1, got {self.blend_weight!r:.80}")
        if not isinstance(self.window_context, bool):
            raise InvalidParameter(f"window_context must be true or false, got {self.window_context!r:.80}")
        if self.context is not None and not callable(self.context):
            raise InvalidParameter(f"context must be a function, got {self.context!r:.80}")
        if self.context is not None and self.mode != "contextual":
            raise InvalidParameter(f"context goes with mode 'contextual', not with {self.mode!r}")

    @classmethod
    def of(
        cls,
        chunking: Chunking | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        spans: Iterable[tuple[int, int]] | None = None,
        noun: str = DOCUMENT,
    ) -> Self:
        """Make a request from what a caller gave.

        Args:
            chunking: a strategy, or several; by default `DEFAULT_STRATEGY`.
            options: the fields of a request by name, and beside them options of the strategy.
            spans: boundaries of the caller's own, instead of a strategy.
            noun: as the attribute.
        """
        own = {field.name for field in dataclasses.fields(cls)} - {"strategies", "noun"}
        asked = {name: value for name, value in (options or {}).items() if name in own}
        parameters = {name: value for name, value in (options or {}).items() if name not in own}
        if spans is not None:
            if chunking is not None or parameters:
                raise InvalidParameter(
                    f"give either spans or a strategy with options, not both: {chunking!r}, {parameters}"
                )
            chunking = CallerSpans(spans)
        strategies = make_strategies(DEFAULT_STRATEGY if chunking is None else chunking, parameters)
        return cls(strategies, noun=noun, **asked)

"""The units that sizes are counted in, by name or as a function, and the rulers that measure them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from late_chunking.boundaries.rulers import CountingRuler, Ruler, UnitRuler
from late_chunking.boundaries.source import SourceText
from late_chunking.dependencies import require
from late_chunking.errors import InvalidParameter

# A name, a function that counts a string, or a tiktoken.Encoding (tiktoken is imported only where used).
Unit: TypeAlias = str | Callable[[str], int] | Any

UNITS: Final[dict[str, Callable[[SourceText], UnitRuler]]] = {
    "tokens": lambda source: source.tokens,
    "chars": lambda source: source.characters,
    "words": lambda source: source.words,
}
TIKTOKEN: Final = "tiktoken:"


def check_unit(unit: Unit, known: Sequence[str]) -> None:
    """Check the unit that sizes count.

    Args:
        unit: what a caller gave.
        known: the names that the strategy takes. One that takes the general `UNITS` also takes
            ``"tiktoken:NAME"``, a ``tiktoken.Encoding`` or a function.

    Raises:
        InvalidParameter: if it is none of those.
    """
    general = set(UNITS) <= set(known)
    if isinstance(unit, str):
        if unit in known or (general and unit.startswith(TIKTOKEN)):
            return
    elif general and (callable(unit) or _is_encoding(unit)):
        return
    more = ", tiktoken:NAME, a tiktoken.Encoding or a function str → int" if general else ""
    raise InvalidParameter(f"unit must be one of {', '.join(known)}{more}, got {unit!r:.80}")


def ruler_of(source: SourceText, unit: Unit) -> Ruler:
    """Give the ruler of a unit; made once a text, and for its parts cut from that.

    Raises:
        InvalidParameter: if the unit is unknown.
            Also if it is tiktoken's, and its tables cannot be loaded.
    """
    check_unit(unit, tuple(UNITS))
    # By identity, as a caller's object need not be hashable; the strategy that names it keeps it alive.
    return source.ruler(unit if isinstance(unit, str) else id(unit), lambda whole: _ruler(whole, unit))


def _ruler(source: SourceText, unit: Unit) -> Ruler:
    """Make the ruler of a unit for a whole text."""
    if isinstance(unit, str):
        return UNITS[unit](source) if unit in UNITS else _tiktoken_ruler(source, _encoding(unit))
    if _is_encoding(unit):
        return _tiktoken_ruler(source, unit)
    return CountingRuler(source.text, np.flatnonzero(source.breaks[:-1]), unit)


def _is_encoding(unit: object) -> bool:
    """Tell whether something is a tiktoken encoding, without importing tiktoken."""
    return hasattr(unit, "encode_ordinary") and hasattr(unit, "decode_with_offsets")


def _encoding(unit: str) -> Any:  # noqa: ANN401 - a tiktoken.Encoding
    """Load the encoding that ``"tiktoken:NAME"`` names; a NAME may also be a model's."""
    tiktoken = require("tiktoken", purpose=f"the unit {unit!r}")
    name = unit.removeprefix(TIKTOKEN)
    if name not in tiktoken.list_encoding_names():
        try:
            name = tiktoken.encoding_name_for_model(name)
        except KeyError:
            known = ", ".join(tiktoken.list_encoding_names())
            raise InvalidParameter(f"unit {unit!r}: tiktoken knows no such encoding or model; it has {known}") from None
    try:
        return tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            f"unit {unit!r}: tiktoken could not download the tables of {name!r}: {type(error).__name__}; "
            "where there is no network, set TIKTOKEN_CACHE_DIR to a folder that holds them"
        ) from error


def _tiktoken_ruler(source: SourceText, encoding: Any) -> UnitRuler:  # noqa: ANN401
    """Tokenize a text once, special tokens as ordinary text, and lay its tokens at their first visible characters."""
    _, offsets = encoding.decode_with_offsets(encoding.encode_ordinary(source.text))
    starts = np.asarray(offsets, dtype=np.int64)
    ends = np.maximum(np.append(starts[1:], len(source.text)), starts + 1)
    visible = source.next_visible[starts]
    anchors = source.cluster_starts[np.where(visible < ends, visible, starts)]
    return UnitRuler(anchors, anchors + 1)

"""Turns of a chat, messages of a ticket, alone or gathered up to a size."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import regex

from late_chunking.boundaries.patterns import compiled, cuts_at, found
from late_chunking.boundaries.pieces import PieceOptions, gather
from late_chunking.boundaries.separators import MESSAGE, SPEAKER, preset_cuts
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import UNITS
from late_chunking.errors import InvalidParameter

_SPEAKER: Final = regex.compile(SPEAKER)
_MESSAGE: Final = regex.compile(MESSAGE)
_ROLES: Final = frozenset(
    "user assistant system human ai bot agent customer client operator interviewer interviewee moderator "  # noqa: SIM905
    "speaker q a".split()
)
# Fields of a message's head: they follow the line that begins it.
_FIELDS: Final = frozenset(
    "from von de van da to an cc bcc date sent subject re reply-to attachments status priority severity assignee "  # noqa: SIM905
    "assigned reporter created updated closed category component version tags labels environment".split()
)
_PARTICLES: Final = frozenset("al bin da de del den der di du el la le of ten the van von".split())  # noqa: SIM905
_NUMBERED: Final = regex.compile(r"(\p{L}{2,}) (?:#?\d+|\(.*\))")  # "Speaker 2", "Agent (Ann)"
_FEW: Final = 3  # speakers of a chat in which each has said one thing so far


@dataclass(frozen=True, slots=True)
class Turns(PieceOptions):
    """What one speaker says before the next one does; what one message of a ticket holds.

    A turn begins at a line such as ``Name: …``, ``[09:41] Name: …``, ``<name> …``, ``## User``,
    ``On … wrote:``, ``From: …`` or ``Comment #3 …``. Without a `size`, one chunk a turn. With
    one, consecutive turns are merged up to it, and a turn larger than that is cut at paragraphs,
    lines, sentences, words; an overlap repeats whole turns. With the unit ``"turns"``, windows
    of so many.

    ``Name:`` alone also begins notes and lists in prose. So it counts where it has a time, where
    the name is a role such as ``User``, where a name speaks at least twice, or where nothing surer
    is found and more than two thirds of the lines begin so, with up to three names.

    Attributes:
        marker: a regular expression for what a turn begins with, instead of all that.
    """

    name: ClassVar[str] = "turns"
    units: ClassVar[tuple[str, ...]] = (*UNITS, "turns")
    marker: str | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        PieceOptions.__post_init__(self)
        if self.marker is not None:
            if not isinstance(self.marker, str) or not self.marker:
                raise InvalidParameter(f"marker must be a regular expression, got {self.marker!r:.80}")
            compiled(self.marker, "marker")

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find where turns begin, and gather what lies between."""
        if self.marker is None:
            starts = _turn_starts(source.text)
        else:
            starts = [start for start, _ in found(source, compiled(self.marker, "marker"), "marker")]
        cuts = cuts_at(source, [0, *sorted(starts), len(source.text)])
        turns = source.trim(cuts[:-1], cuts[1:])
        finer = [] if self.size is None else preset_cuts(source)
        return [replace(boundary, kind="turn") for boundary in gather(source, self, turns, finer)]


def _turn_starts(text: str) -> list[int]:
    """Give the lines that begin a turn."""
    starts = [match.start() for match in _MESSAGE.finditer(text)]
    named: list[tuple[int, str]] = []
    for match in _SPEAKER.finditer(text):
        name = (match["name"] or "").casefold()
        numbered = _NUMBERED.fullmatch(name)
        role = (numbered[1] if numbered else name) in _ROLES
        if match["sure"] or role or (match["time"] and name not in _FIELDS):
            starts.append(match.start())
        elif name not in _FIELDS and _may_speak(match["name"], match[0], text[match.end() : match.end() + 1]):
            named.append((match.start(), name))
    often = Counter(name for _, name in named)
    lines = sum(1 for line in text.splitlines() if line.strip())
    all_of_them = not starts and len(often) <= _FEW and 3 * len(named) > 2 * lines
    return starts + [start for start, name in named if all_of_them or often[name] > 1]


def _may_speak(name: str, label: str, following: str) -> bool:
    """Tell whether words before a colon look like a name, not like the beginning of a list or a clause."""
    if label.lstrip().startswith("#"):
        return False  # a heading
    words = name.split(" ")
    capital = [not word[:1].islower() for word in words]
    if len(words) == 1:
        return capital[0] or following not in ("", "\r", "\n")
    return all(large or word in _PARTICLES for word, large in zip(words, capital, strict=True))

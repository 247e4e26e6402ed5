"""Lists of separators by name: prose, chats, tickets.

The patterns are the package `regex`'s, which lets several groups share a name. None takes time
that grows faster than the text: what repeats is bounded or possessive.
"""

from typing import Final

import regex

from late_chunking.boundaries.patterns import cuts_at
from late_chunking.boundaries.source import SourceText
from late_chunking.characters import IntArray

_PARAGRAPH: Final = r"\n\s*\n"
_LINE: Final = r"\r\n|[\n\r\u2028]"
_SENTENCE_END: Final = r"[.!?…؟۔][\"'”’»)\]]*\s+|[。！？｡।॥][」』”’）]*\s*"
_WORD: Final = r"\s+"

# A time of day, with or without a date before it, as chat programs write them.
_TIME: Final = (
    r"[\[(]?(?:\d[\d./-]{0,12}[, T]{1,3})?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"(?: ?[AaPp]\.?[Mm]\.?)?[\])]?"
)
_NAME: Final = r"[^\W\d_][\w.'’-]{0,40}(?: [\w.'’()#&/-]{1,30}){0,5}"

# A line that begins a turn. The groups: `name` and `time`, as far as the line has them; `sure` where there is no doubt.
SPEAKER: Final = (
    r"(?mw)^[ \t]*+(?:[-*•] )?(?:"
    rf"(?:(?P<time>{_TIME})[ \t–~-]*+)?@?(?:\*\*|__)?(?P<name>{_NAME})(?P<time>[ \t]*+{_TIME})?"
    r"(?:\*\*|__)?(?:：| ?:(?:\*\*|__)?(?=\s|$))"
    rf"|(?:(?P<time>{_TIME})[ \t]*+)?<[@+ ]?(?P<sure>[^\s<>|@]{{1,40}})>(?= )"
    rf"|(?P<name>{_NAME})(?P<time>(?: {{1,4}}| ?[—–-] ?)(?:(?:Today|Yesterday) at )?{_TIME})[ \t]*+$"
    r"|<\|(?:im_start|start_header_id)\|>(?P<sure>\w+)"
    r"|#{1,6} (?P<name>[^\W\d_]{1,40}):?[ \t]*+$)"
)
_ANY: Final = r"[^\n\r\u2028]"
_BREAK: Final = r"(?:\r\n|[\n\r\u2028])"
# A line that begins a message in a ticket or a mail thread.
MESSAGE: Final = (
    r"(?mw)^[ \t>]*+(?:"
    rf"(?P<sure>(?:On|Am) (?={_ANY}*\d){_ANY}{{5,120}}{_BREAK}?{_ANY}{{0,80}}"
    r"(?: wrote| schrieb[^:\n\r\u2028]{0,60}):)[ \t]*+$"
    r"|(?P<sure>(?:From|Von|De|Van|Da):[ \t])"
    rf"(?={_ANY}{{0,200}}@|{_ANY}{{0,200}}{_BREAK}[ \t>]*(?:Sent|To|Date|Subject|Gesendet|An|Datum|Betreff):)"
    rf"|(?P<sure>-{{2,}} ?(?:Original|Forwarded|Reply|Ursprüngliche|Message){_ANY}{{0,60}})$"
    r"|(?P<sure>(?:Comment|Reply|Update) #?\d{1,9})(?=[ \t]*(?:$|[:–(-]|by |from ))"
    r"|(?P<sure>(?:Comment|Reply|Update) (?:by|from) [^.\n\r\u2028]{1,40})$"
    rf"|(?P<sure>[^:\n\r\u2028]{{2,60}} (?:added a comment|commented|replied|wrote)\b{_ANY}{{0,40}}"
    rf"(?::|{_TIME}|\b\d{{4}}|\bago))[ \t]*$"
    rf"|(?P<sure>#\d{{1,9}} {_ANY}{{0,80}}\d{{4}}{_ANY}{{0,30}})$)"
)
_RULE: Final = r"(?mw)^[ \t]*+(?:-{3,}+|={3,}+|_{3,}+|\*{3,}+|~{3,}+)[ \t]*+" + _BREAK

# Coarsest first. A chat is cut at its turns, a ticket at rules and messages, then both as prose is.
PRESETS: Final = {
    "text": (_PARAGRAPH, _LINE, _SENTENCE_END, _WORD),
    "chat": (rf"(?={SPEAKER})", _PARAGRAPH, _LINE, _SENTENCE_END, _WORD),
    "tickets": (_RULE, rf"(?={MESSAGE})", rf"(?={SPEAKER})", _PARAGRAPH, _LINE, _SENTENCE_END, _WORD),
}


def preset_cuts(source: SourceText, preset: str = "text") -> list[IntArray]:
    """Give where a text may be cut by a list of separators of ours, coarsest first."""
    patterns = [regex.compile(separator) for separator in PRESETS[preset]]
    return [cuts_at(source, [match.end() for match in pattern.finditer(source.text)]) for pattern in patterns]

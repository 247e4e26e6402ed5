"""Chats and tickets."""

import pytest
import regex

from late_chunking import errors
from late_chunking.boundaries import Recursive, SentenceWindow, Turns, split
from late_chunking.boundaries.separators import PRESETS
from tests.sources import byte_source

CHATS = {
    "names": ["Ann: Is it there?", "Bob: Not yet.\nMaybe tomorrow.", "Ann: Thanks."],
    "two lines": ["Ann: Is it there?", "Bob: Not yet."],
    "roles": ["User: How high is it?\n\nNote: in metres.", "Assistant: It is 12 m high."],
    "times": ["[09:41] Ann Lee: Is it there?", "[09:42] Bob: Not yet."],
    "exported": ["12/31/24, 9:15 PM - Ann: Hello", "12/31/24, 9:16 PM - Bob: Hi: all well?"],
    "brackets": ["[31.12.24, 21:15:03] Ann: Hello", "[31.12.24, 21:15:09] Bob: Hi"],
    "irc": ["09:41 <ann> is it there", "09:42 <@bob> not yet"],
    "headed": ["Ann Lee  9:41 AM\nIs it there?", "Bob  9:45 AM\nNot yet."],
    "bold": ["**Ann:** Is it there?", "**Bob:** Not yet.", "**Ann:** Thanks."],
    "markup": ["<|im_start|>user\nIs it there?<|im_end|>", "<|im_start|>assistant\nNot yet.<|im_end|>"],
    "headings": ["## User\nIs it there?", "## Assistant\nNot yet."],
    "wide colon": ["小明：你好。", "小红：你好吗？", "小明：很好。"],
    "tilde": ["[12.05.24, 09:41:13] ~ Ben: yo", "[12.05.24, 09:41:20] Ann: hi"],
    "offset": ["[2024-05-12T09:41:00+02:00] Anna: hi", "[2024-05-12T09:42:00+02:00] Ben: yo"],
    "dashes": ["anna — Today at 9:41 AM\nhi", "ben — 12/05/2024 9:42 AM\nyo"],
    "spaced": ["Anna : bonjour", "Bo : salut", "Anna : ça va ?"],
    "mentions": ["@anna: hi", "@ben: yo", "@anna: ok"],
    "titles": ["Dr. Anna Maria von der Leyen: Yes.", "Mr. Bo: No.", "Dr. Anna Maria von der Leyen: Well."],
    "heads": ["### User:\nhi", "### Assistant:\nyo"],
    "speech": ["MODERATOR: Good evening.", "DR. ÖZ-MÜLLER: Thank you.", "MODERATOR: So?", "DR. ÖZ-MÜLLER: No."],
}
TICKETS = {
    "mail": [
        "From: ann@example.org\nTo: desk@example.org\nDate: Monday\nSubject: Printer\n\nIt smokes.",
        "On Mon, 3 Feb 2025 at 10:12, Desk <desk@example.org> wrote:\n> Which one?",
    ],
    "wrapped": ["Hi", "On Mon, May 12, 2024 at 9:41 AM Anna\n<anna@example.com> wrote:\n> Hello"],
    "german": ["Hallo", "Am 12.05.2024 um 09:41 schrieb Anna:\n> Hallo"],
    "display names": ["Hi", "From: Anna Smith\nSent: Monday\nTo: Bo\nSubject: x\n\nHello"],
    "forge": ["It fails.", "anna commented on May 12, 2024\nSince when?", "bo commented 3 days ago\nSince May."],
    "comments": ["Printer smokes\nStatus: open\nPriority: high", "Comment #1\nWhich one?", "Comment #2\nThe new one."],
    "tracker": ["Printer smokes.", "Ann Lee added a comment - 12/Jan/25 3:05 PM\nThe new one."],
}


@pytest.mark.parametrize("name", [*CHATS, *TICKETS])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\u2028"])
def test_turns_are_found(name: str, newline: str) -> None:
    turns = [turn.replace("\n", newline) for turn in (CHATS | TICKETS)[name]]
    text = newline.join(turns)
    boundaries = split(byte_source(text), Turns())
    assert [text[slice(*boundary.span)] for boundary in boundaries] == turns
    assert {boundary.kind for boundary in boundaries} == {"turn"}


@pytest.mark.parametrize(
    "text",
    [
        "The plan is simple.\n\nNote: it may rain.\nIngredients: flour, water.\n\nSee https://example.org: there.",
        "At 09:41 the train left.\nNobody: not one person saw it.\nIt was late.\nIt was dark.",
        "Ann wrote a letter to Bob.\nUpdate from the field came at noon.\nOn Monday he wrote: nothing.",
        "A short list: apples, pears.\nIt rained.\nSystem requirements: 4 GB.\nUser guide: see below.\nIt was late.",
        "if x:\n  return 1\nelse:\n  return 2\ntry:\n  x()\nelse:\n  y()",
        "Host: example.org\nAccept: text\nConnection: close\nAge: 5",
        "On the last page of the book he wrote:\nit is over.\nAnswer 42 is right.\nUpdate 3 was released.",
        "The question is:\nwhy?\nThe question is:\nhow?",
        "Status: open\nPriority: high\nStatus: closed",
    ],
)
def test_notes_and_lists_are_no_turns(text: str) -> None:
    assert len(split(byte_source(text), Turns())) == 1


def test_turns_gather_and_long_ones_are_cut() -> None:
    text = "Ann: One.\nBob: Two.\nAnn: Three is long. It goes on and on.\nBob: Four."
    found = [text[slice(*boundary.span)] for boundary in split(byte_source(text), Turns(20, unit="chars"))]
    assert found == ["Ann: One.\nBob: Two.", "Ann: Three is long.", "It goes on and on.", "Bob: Four."]
    found = [text[slice(*boundary.span)] for boundary in split(byte_source(text), Turns(2, 1, "turns"))]
    assert [len(regex.findall("Ann|Bob", chunk)) for chunk in found] == [2, 2, 2]


def test_a_marker_of_the_callers() -> None:
    text = "intro\n@1 first\nmore\n@2 second"
    found = [text[slice(*boundary.span)] for boundary in split(byte_source(text), Turns(marker=r"(?m)^@\d"))]
    assert found == ["intro", "@1 first\nmore", "@2 second"]
    for marker, message in ((5, "marker must be a regular expression, got 5"), ("(", "is no regular expression")):
        with pytest.raises(errors.InvalidParameter, match=message):
            Turns(marker=marker)
    with pytest.raises(errors.InvalidParameter, match=r"marker .* took too long"):
        split(byte_source("a" * 40), Turns(marker="(a|aa)+$b"))


@pytest.mark.parametrize("preset", ["chat", "tickets"])
def test_presets_cut_at_turns_before_all_else(preset: str) -> None:
    turns = [f"{name}: {'a word ' * 5}" for name in ("Ann", "Bob", "Ann", "Bob")]
    text = "\n".join(turns)
    strategy = Recursive(90, unit="chars", separators=preset)
    found = [text[slice(*boundary.span)] for boundary in split(byte_source(text), strategy)]
    assert found == ["\n".join(turns[:2]).rstrip(), "\n".join(turns[2:]).rstrip()]


def test_a_ticket_is_cut_at_its_rules() -> None:
    text = "It smokes. It smells.\n----------\nWhich one? The new one?\n----------\nThe new one."
    found = [
        text[slice(*boundary.span)]
        for boundary in split(byte_source(text), Recursive(40, unit="chars", separators="tickets"))
    ]
    assert found == ["It smokes. It smells.\n----------", "Which one? The new one?\n----------", "The new one."]


_HOSTILE = [
    " ",
    "1",
    "a1",
    "1.",
    "1, ",
    "\n ",
    "-",
    "–",
    "**",
    "# ",
    "On x",
    "Ann: ",
    "[",
    "9:41\t",
    "[9:41] ",
    "😀",
    "From: ",
]


@pytest.mark.parametrize("text", [f"x\n{piece * (100_000 // len(piece))}!" for piece in _HOSTILE], ids=_HOSTILE)
def test_markers_stay_linear(text: str) -> None:
    """Ended by the tests' own limit of time where they do not."""
    for strategy in (Turns(), *(Recursive(1000, unit="chars", separators=preset) for preset in PRESETS)):
        assert split(byte_source(text), strategy)


@pytest.mark.parametrize("text", ["a" * 200_000, "a b " * 50_000, "Ann " * 50_000, "9:41 " * 40_000, "<" * 200_000])
def test_presets_stay_linear(text: str) -> None:
    """Ended by the tests' own limit of time where they do not."""
    for strategy in (Turns(), *(Recursive(1000, unit="chars", separators=preset) for preset in PRESETS)):
        assert split(byte_source(text), strategy)


def test_sentence_windows_name_the_sentences_around() -> None:
    text = "One. Two. Three. Four."
    found = split(byte_source(text), SentenceWindow(1))
    assert [text[slice(*boundary.span)] for boundary in found] == ["One.", "Two.", "Three.", "Four."]
    assert [text[slice(*boundary.context)] for boundary in found if boundary.context] == [
        "One. Two.",
        "One. Two. Three.",
        "Two. Three. Four.",
        "Three. Four.",
    ]
    assert [boundary.context for boundary in split(byte_source(text), SentenceWindow(2**70))] == [(0, len(text))] * 4
    for options in ({"window": -1}, {"window": "1"}, {"language": ""}):
        with pytest.raises(errors.InvalidParameter):
            SentenceWindow(**options)

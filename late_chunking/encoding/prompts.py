"""What a model wants to read before a query or a document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from late_chunking.errors import InvalidParameter

# From the models' cards: they were trained with these, and not every folder says so. The
# first prefix that fits decides; None means that the card's prompts are not of this kind.
_KNOWN: Final = (
    ("intfloat/multilingual-e5-large-instruct", None),
    ("intfloat/e5-", ("query: ", "passage: ")),
    ("intfloat/multilingual-e5-", ("query: ", "passage: ")),
    ("nomic-ai/nomic-embed-text-", ("search_query: ", "search_document: ")),
    ("nomic-ai/modernbert-embed-", ("search_query: ", "search_document: ")),
)
_DOCUMENT_NAMES: Final = ("document", "passage", "corpus")
KINDS: Final = ("query", "document")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts in force, and where they come from.

    Attributes:
        query: put before a query.
        document: put before a document.
        source: ``"caller"``, ``"folder"``, ``"model card"`` or ``"none"``.
    """

    query: str
    document: str
    source: str

    @property
    def notes(self) -> tuple[str, ...]:
        """A warning where there is no prompt at all."""
        if self.query or self.document:
            return ()
        return ("no prompt is in force: neither the folder nor the table of known models names one",)

    def of(self, kind: str | None) -> str:
        """Give the prompt of a kind of text; None asks for no prompt.

        Raises:
            InvalidParameter: if the kind is neither ``"query"``, ``"document"`` nor None.
        """
        check_kind(kind)
        return {None: "", "query": self.query, "document": self.document}[kind]


def _is_text(value: str) -> bool:
    """Tell whether a string is free of lone surrogates."""
    return value == value.encode(errors="replace").decode()


def check_kind(kind: object) -> None:
    """Check that a text is a query, a document or neither.

    Raises:
        InvalidParameter: if not.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidParameter(f"input_type must be one of {', '.join(KINDS)} or null, got {kind!r}")


def find_prompts(name: str, config: Mapping[str, Any], given: Mapping[str, str] | None) -> Prompts:
    """Decide on the prompts: the caller's, else the folder's, else those of the model's card.

    Args:
        name: the model's name.
        config: ``config_sentence_transformers.json``.
        given: the caller's, under ``query`` and ``document``; a missing one is looked up.

    Raises:
        InvalidParameter: if `given` has other keys, or values that are not strings.
    """
    given = given or {}
    for key, value in given.items():
        if key not in KINDS or not isinstance(value, str) or not _is_text(value):
            raise InvalidParameter(f"prompts take strings under {' and '.join(KINDS)}, got {key!r}: {value!r}")
    said = config.get("prompts")
    folder = {key: value for key, value in said.items() if isinstance(value, str)} if isinstance(said, dict) else {}
    folder = {key: value for key, value in folder.items() if value}
    default = folder.get(str(config.get("default_prompt_name")), "")
    query = folder.get("query", default)
    document = next((folder[key] for key in _DOCUMENT_NAMES if key in folder), default)
    source = "folder" if query or document else "none"
    if source == "none" and (card := next((pair for prefix, pair in _KNOWN if name.startswith(prefix)), None)):
        (query, document), source = card, "model card"
    if given:
        source = "caller"
    return Prompts(given.get("query", query), given.get("document", document), source)

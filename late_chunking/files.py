"""Text files → documents, exactly as they stand."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from late_chunking.documents import Document
from late_chunking.errors import InvalidInput


def read_documents(names: Iterable[str]) -> Iterator[Document]:
    """Read UTF-8 files, each one document named and titled as its file; ``-`` is standard input.

    Nothing is translated: line ends and a byte order mark stay, so spans index the file.

    Raises:
        InvalidInput: if a file is missing, unreadable or not UTF-8.
    """
    for name in names:
        # A name that is not UTF-8 itself is shown with its odd bytes escaped.
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        try:
            if name == "-" and sys.stdin is None:
                raise InvalidInput("-: there is no standard input")
            if name == "-":
                data = sys.stdin.buffer.read()
            else:
                with open(name, "rb") as file:  # noqa: PTH123 - the name stays as given in errors
                    data = file.read()
        except OSError as error:
            raise InvalidInput(f"{shown}: {error.strerror}") from error
        try:
            yield Document(data.decode("utf-8"), id=shown, title=None if name == "-" else Path(shown).stem)
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{shown}: not UTF-8: byte {data[error.start]:#04x} at offset {error.start} ({error.reason})"
            ) from error

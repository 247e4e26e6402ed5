"""Contexts of chunks, written by a language model behind an OpenAI-compatible chat endpoint.

The way of Anthropic's "contextual retrieval" (2024): the model reads the document and one of its
chunks, and says in a sentence or two what the chunk is about.
"""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from late_chunking.dependencies import require
from late_chunking.documents import Chunk, Document
from late_chunking.errors import ContextError, ContextRefused, InvalidParameter

_DOCUMENT: Final = "<document>\n{document}\n</document>"
INSTRUCTION: Final = (
    "Here is a chunk of the document above:\n<chunk>\n{chunk}\n</chunk>\n"
    "Say in one or two short sentences what is needed to understand the chunk without the document: what and whom "
    "it is about, and where in the document it stands. Answer with these sentences alone."
)
_FINAL: Final = range(400, 500)
_AGAIN: Final = (408, 409, 425, 429)  # of these, the ones that may succeed later
_WAIT: Final = 0.5  # seconds before the second try; doubled for each further one


@dataclass(slots=True)
class Usage:
    """What has been asked of the endpoint.

    Attributes:
        requests: answers that came from it.
        kept: answers that were kept from before.
        prompt_tokens: tokens it read.
        cached_tokens: of these, tokens it says it had read before.
        completion_tokens: tokens it wrote.
        cost: what they cost, at the writer's prices; None without any.
    """

    requests: int = 0
    kept: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


@dataclass
class ContextWriter:
    """Writes the contexts of a document's chunks; a `context` function for mode ``"contextual"``.

    The document comes first in every request, so that an endpoint which caches prefixes reads it
    once: its first chunk is asked about alone, the others after it, so many at a time. An answer
    is kept as soon as it comes, so that a job that was interrupted goes on where it was.

    Attributes:
        url: the endpoint's base, up to ``/v1``.
        model: the language model's name.
        api_key: sent as a bearer token.
        cache: a SQLite file of answers; by default none are kept.
        concurrency: requests at a time.
        tries: requests for one answer before giving up.
        timeout: seconds for one request.
        max_tokens: the most an answer may have.
        instruction: what is asked; ``{chunk}`` stands for the chunk.
        prices: of a million tokens read, of a million read from the endpoint's cache, and of a
            million written.
        usage: what has been asked so far.
    """

    url: str
    model: str
    api_key: str | None = None
    cache: Path | str | None = None
    concurrency: int = 8
    tries: int = 5
    timeout: float = 120.0
    max_tokens: int = 200
    instruction: str = INSTRUCTION
    prices: tuple[float, float, float] | None = None
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        """Check the settings, and open the connection and the cache."""
        if not self.url.startswith(("http://", "https://")):
            raise InvalidParameter(f"the context endpoint must be an http or https address, got {self.url!r}")
        if "{chunk}" not in self.instruction:
            raise InvalidParameter("the instruction must say where the chunk goes: {chunk}")
        for name in ("concurrency", "tries", "max_tokens"):
            if getattr(self, name) < 1:
                raise InvalidParameter(f"{name} must be at least 1, got {getattr(self, name)}")
        httpx = require("httpx", purpose="written contexts")
        self._failures: tuple[type[Exception], ...] = (httpx.TransportError,)
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        self._client: Any = httpx.Client(timeout=self.timeout, headers=headers)
        self._lock = threading.Lock()
        if self.cache is not None:
            self.cache = Path(self.cache)
            self.cache.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._database()) as database, database:
                database.execute("CREATE TABLE IF NOT EXISTS contexts (key TEXT PRIMARY KEY, context TEXT NOT NULL)")

    def __call__(self, document: Document, chunks: Sequence[Chunk]) -> list[str]:
        """Give a context for each chunk.

        Raises:
            ContextError: if the endpoint gives no answer to use; `ContextRefused`, if it never will.
        """
        texts = [chunk.text for chunk in chunks]
        keys = [self._key(document, text) for text in texts]
        contexts = self._kept(keys)
        missing = list(dict.fromkeys(key for key in keys if key not in contexts))
        asked = dict(zip(keys, texts, strict=True))
        if missing:
            # The first alone: the others find the document in the endpoint's cache.
            contexts[missing[0]] = self._written(document, missing[0], asked[missing[0]])
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="context") as pool:
            written = pool.map(lambda key: self._written(document, key, asked[key]), missing[1:])
            contexts.update(zip(missing[1:], written, strict=True))
        return [contexts[key] for key in keys]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _written(self, document: Document, key: str, chunk: str) -> str:
        """Ask for one context, and keep it."""
        messages = [
            {"role": "user", "content": _DOCUMENT.format(document=document.text)},
            {"role": "user", "content": self.instruction.replace("{chunk}", chunk)},
        ]
        answer = self._asked(
            {"model": self.model, "messages": messages, "max_tokens": self.max_tokens, "temperature": 0}
        )
        try:
            context = answer["choices"][0]["message"]["content"].strip()
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ContextError(f"{self.url} gave no answer to use: {json.dumps(answer)[:200]}") from error
        if not context:
            raise ContextError(f"{self.url} gave an empty context: {json.dumps(answer)[:200]}")
        self._count(answer.get("usage") or {})
        if self.cache is not None:
            with self._lock, closing(self._database()) as database, database:
                database.execute("INSERT OR REPLACE INTO contexts VALUES (?, ?)", (key, context))
        return str(context)

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request, again where that may help."""
        problem = ""
        for turn in range(self.tries):
            wait = _WAIT * 2**turn
            try:
                response = self._client.post(f"{self.url.rstrip('/')}/chat/completions", json=body)
            except self._failures as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if response.status_code == 200:
                    return self._parsed(response)
                problem = f"status {response.status_code}: {response.text[:200]}"
                if response.status_code in _FINAL and response.status_code not in _AGAIN:
                    raise ContextRefused(f"{self.url} gave no context: {problem}")
                after = response.headers.get("retry-after", "")
                wait = min(float(after), self.timeout) if after.isdecimal() else wait
            if turn < self.tries - 1:
                time.sleep(wait)
        raise ContextError(f"{self.url} gave no context: {problem}")

    def _parsed(self, response: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx is imported where used
        """Read an answer's body."""
        try:
            answer = response.json()
        except ValueError as error:
            raise ContextError(f"{self.url} did not answer with JSON: {response.text[:200]!r}") from error
        if not isinstance(answer, dict):
            raise ContextError(f"{self.url} did not answer with an object: {response.text[:200]!r}")
        return answer

    def _count(self, usage: dict[str, Any]) -> None:
        """Add up what an answer took."""
        read, wrote = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        dear, cheap, written = self.prices or (0.0, 0.0, 0.0)
        with self._lock:
            self.usage.requests += 1
            self.usage.prompt_tokens += read
            self.usage.cached_tokens += cached
            self.usage.completion_tokens += wrote
            if self.prices is not None:
                spent = ((read - cached) * dear + cached * cheap + wrote * written) / 1e6
                self.usage.cost = (self.usage.cost or 0.0) + spent

    def _kept(self, keys: Sequence[str]) -> dict[str, str]:
        """Give the answers that were kept."""
        if self.cache is None:
            return {}
        contexts: dict[str, str] = {}
        with closing(self._database()) as database:
            for key in keys:
                row = database.execute("SELECT context FROM contexts WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    contexts[key] = row[0]
        self.usage.kept += len(contexts)
        return contexts

    def _database(self) -> sqlite3.Connection:
        """Open the cache; a connection for each use, as threads may not share one."""
        if self.cache is None:
            raise InvalidParameter("there is no cache")
        return sqlite3.connect(self.cache, timeout=60)

    def _key(self, document: Document, chunk: str) -> str:
        """Name an answer by all that it depends on."""
        about = [self.model, self.instruction, self.max_tokens, document.text, chunk]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

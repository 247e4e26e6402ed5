"""How the service is run: the one place where the environment is read."""

import ipaddress
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from late_chunking import LateChunker, Settings
from late_chunking.errors import InvalidParameter
from late_chunking.settings import DEFAULT_MODEL
from late_chunking.writer import ContextWriter

_LOCAL_NAME: Final = "localhost"


class _Environment(EnvSettingsSource):
    """Environment variables, without a HOSTNAME that was never meant as an address.

    Docker, Kubernetes and login shells set HOSTNAME to the machine's name. Only an address, or
    ``localhost``, can have been set for the server to listen on.
    """

    def __call__(self) -> dict[str, Any]:
        """Give the values that are set."""
        values = super().__call__()
        if "hostname" in values and not _is_address(str(values["hostname"])):
            del values["hostname"]
        return values


class ServerSettings(BaseSettings):
    """Settings of the service. Each field is also an environment variable, in capitals.

    Values given to the constructor win over the environment.

    Attributes:
        model_id: ``"embedded"`` or ``"embedded-late"``, or the folder or hub id of a model or an adapter.
        revision: branch, tag or commit on the hub.
        dtype: type of the weights; by default bfloat16 on CUDA, else float32.
        device: a torch device; by default the best there is.
        window: tokens read at once; by default what the model was trained on.
        query_prompt: put before queries, instead of the model's own prompt.
        document_prompt: put before documents, instead of the model's own prompt.
        max_batch_tokens: tokens the encoder reads in one batch; by default what suits the device.
        compile: compile the network's layers at the start; meant for GPUs.
        max_concurrent_requests: requests in work at once; more are answered 429.
        max_queued_tokens: tokens that may wait for the device; requests beyond are answered 429.
        max_client_batch_size: documents or inputs in one request; more are answered 413.
        max_document_tokens: a longer document is refused.
        payload_limit: bytes of a request's body; more are answered 413.
        tokenization_workers: threads that cut and tokenize ahead of the device.
        request_timeout: seconds that a request may take, and its body to arrive; then it is answered 503.
        ready_timeout: seconds that the device may owe an answer before the server calls itself not ready.
        drain_timeout: seconds that requests in work may take to end once the server is told to stop.
        api_key: if set, every route but the health checks asks for it as a bearer token; several,
            with commas between them.
        api_key_file: a file with such a key a line.
        cors_allow_origin: origins whose pages may call the server, with commas between them; ``*`` for
            any. By default none may.
        json_output: log lines of JSON.
        otlp_endpoint: where traces are sent, by OTLP over HTTP, such as ``http://collector:4318``.
        hostname: address to listen on.
        port: port to listen on.
        served_model_name: the model's name in requests and answers; by default `model_id`.
        context_url: an OpenAI-compatible endpoint, up to ``/v1``, that writes the contexts of chunks
            for requests that ask for it.
        context_model: the language model that writes them.
        context_api_key: the endpoint's key.
        context_cache: a SQLite file of what it has written; by default nothing is kept.

    Raises:
        pydantic.ValidationError: if a value is wrong, or a name unknown.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_ignore_empty=True, protected_namespaces=())

    model_id: str = Field(default=DEFAULT_MODEL, min_length=1)
    revision: str | None = None
    dtype: str | None = None
    device: str | None = None
    window: int | None = Field(default=None, ge=1)
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_batch_tokens: int | None = Field(default=None, ge=1)
    compile: bool = False
    max_concurrent_requests: int = Field(default=512, ge=1)
    max_queued_tokens: int = Field(default=1_048_576, ge=1)
    max_client_batch_size: int = Field(default=256, ge=1)
    max_document_tokens: int = Field(default=131_072, ge=1)
    payload_limit: int = Field(default=64_000_000, ge=1)
    tokenization_workers: int = Field(default=2, ge=1)
    request_timeout: float = Field(default=300.0, gt=0)
    ready_timeout: float = Field(default=60.0, gt=0)
    drain_timeout: float = Field(default=60.0, ge=0)
    api_key: SecretStr | None = Field(default=None, min_length=1)
    api_key_file: Path | None = None
    cors_allow_origin: str | None = Field(default=None, min_length=1)
    json_output: bool = False
    otlp_endpoint: str | None = Field(default=None, min_length=1)
    # Only this machine, unless asked: without a key, 0.0.0.0 would lend the model to the whole
    # network of whoever tries the server on a laptop. A container sets HOSTNAME=0.0.0.0.
    hostname: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8080, ge=0, le=65_535)
    served_model_name: str | None = Field(default=None, min_length=1)
    context_url: str | None = Field(default=None, min_length=1)
    context_model: str | None = Field(default=None, min_length=1)
    context_api_key: SecretStr | None = Field(default=None, min_length=1)
    context_cache: Path | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the constructor first, then from the environment, and nowhere else."""
        return init_settings, _Environment(settings_cls)

    @classmethod
    def of(cls, **given: Any) -> Self:  # noqa: ANN401 - the fields, checked here
        """Make settings from values that may be wrong.

        Raises:
            InvalidParameter: in one line that names the setting, its value and its limit.
        """
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            message = f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}, got {first['input']!r}"
            raise InvalidParameter(message) from error

    @property
    def model_name(self) -> str:
        """The model's name in requests and answers."""
        return self.served_model_name or self.model_id

    def api_keys(self) -> list[str]:
        """Read the keys that the server asks for; none if it asks for none.

        Raises:
            InvalidParameter: if their file cannot be read, or holds none.
        """
        keys = [] if self.api_key is None else self.api_key.get_secret_value().split(",")
        if self.api_key_file is not None:
            try:
                lines = self.api_key_file.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not UTF-8"
                raise InvalidParameter(f"api_key_file {str(self.api_key_file)!r}: {reason}") from error
            keys += lines
            if not any(line.strip() for line in lines):
                raise InvalidParameter(f"api_key_file {str(self.api_key_file)!r} holds no key")
        found = [key.strip() for key in keys if key.strip()]
        if self.api_key is not None and not found:
            raise InvalidParameter("api_key holds no key")
        return found

    @property
    def cors_origins(self) -> list[str]:
        """Origins whose pages may call the server."""
        return [origin.strip() for origin in (self.cors_allow_origin or "").split(",") if origin.strip()]

    def library(self) -> Settings:
        """Give the library's part of these settings.

        Raises:
            InvalidParameter: if the library refuses a value.
        """
        given = {"query": self.query_prompt, "document": self.document_prompt}
        prompts = {kind: prompt for kind, prompt in given.items() if prompt is not None}
        return Settings(
            model=self.model_id,
            window=self.window,
            prompts=prompts or None,
            revision=self.revision,
            device=self.device,
            dtype=self.dtype,
            max_document_tokens=self.max_document_tokens,
            max_batch_tokens=self.max_batch_tokens,
            compile=self.compile,
        )

    def context_writer(self) -> ContextWriter | None:
        """Make what writes contexts, if an endpoint is set.

        Raises:
            InvalidParameter: if a setting of it is missing or wrong.
        """
        if self.context_url is None:
            return None
        if self.context_model is None:
            raise InvalidParameter("context_url needs context_model: the language model's name")
        key = None if self.context_api_key is None else self.context_api_key.get_secret_value()
        return ContextWriter(self.context_url, self.context_model, api_key=key, cache=self.context_cache)

    def load_chunker(self) -> LateChunker:
        """Load the model.

        Raises:
            ModelError: if it cannot be found or used.
            MissingDependency: if it needs a package that is not installed.
        """
        return LateChunker(self.library())


def _is_address(name: str) -> bool:
    """Tell whether a name is an IP address or ``localhost``."""
    if name == _LOCAL_NAME:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

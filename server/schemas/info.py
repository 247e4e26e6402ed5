"""What the service and its model say of themselves."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class InfoAnswer(BaseModel):
    """Names that text-embeddings-inference has too come first, then what is particular here."""

    model_config = ConfigDict(protected_namespaces=())

    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: dict[str, Any]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_client_batch_size: int
    tokenization_workers: int
    version: str
    served_model_name: str
    payload_limit: int
    strategies: list[str]
    modes: list[str]
    model: str
    revision: str | None
    base_model: str | None
    architecture: str
    dimensions: int
    window: int
    max_document_tokens: int
    default_size: int
    pooling: str
    normalize: bool
    query_prompt: str
    document_prompt: str
    prompt_source: str
    device: str
    dtype: str
    encoder: str
    notes: list[str]


class Health(BaseModel):
    """A state in a word."""

    status: str

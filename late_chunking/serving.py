"""The command ``late-chunking serve``: every option is a setting of the server."""

from typing import Annotated

import typer

from late_chunking.dependencies import require


def serve(
    hostname: Annotated[str | None, typer.Option("--host", help="Address to listen on; HOSTNAME. [127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; PORT. [8080]")] = None,
    model_id: Annotated[str | None, typer.Option("--model", help="The model; MODEL_ID. [embedded]")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision on the hub; REVISION.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Type of the weights; DTYPE.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device; DEVICE.")] = None,
    window: Annotated[int | None, typer.Option(help="Tokens read at once; WINDOW.")] = None,
    query_prompt: Annotated[str | None, typer.Option(help="Put before queries; QUERY_PROMPT.")] = None,
    document_prompt: Annotated[str | None, typer.Option(help="Put before documents; DOCUMENT_PROMPT.")] = None,
    served_model_name: Annotated[str | None, typer.Option(help="Name in answers; SERVED_MODEL_NAME.")] = None,
    api_key: Annotated[str | None, typer.Option(help="Bearer key to ask for, or several with commas; API_KEY.")] = None,
    api_key_file: Annotated[str | None, typer.Option(help="A file with a key a line; API_KEY_FILE.")] = None,
    cors_allow_origin: Annotated[str | None, typer.Option(help="Origins that may call; CORS_ALLOW_ORIGIN.")] = None,
    json_output: Annotated[bool | None, typer.Option(help="Log lines of JSON; JSON_OUTPUT.")] = None,
    otlp_endpoint: Annotated[str | None, typer.Option(help="Where traces are sent; OTLP_ENDPOINT.")] = None,
    compile: Annotated[  # noqa: A002 - named as the setting
        bool | None, typer.Option(help="Compile the layers at the start; COMPILE.")
    ] = None,
    max_batch_tokens: Annotated[int | None, typer.Option(help="Tokens a batch; MAX_BATCH_TOKENS.")] = None,
    max_concurrent_requests: Annotated[
        int | None, typer.Option(help="More are answered 429; MAX_CONCURRENT_REQUESTS.")
    ] = None,
    max_queued_tokens: Annotated[
        int | None, typer.Option(help="More waiting are answered 429; MAX_QUEUED_TOKENS.")
    ] = None,
    request_timeout: Annotated[float | None, typer.Option(help="Seconds a request may take; REQUEST_TIMEOUT.")] = None,
    ready_timeout: Annotated[
        float | None, typer.Option(help="Seconds to an answer of the device; READY_TIMEOUT.")
    ] = None,
    drain_timeout: Annotated[float | None, typer.Option(help="Seconds to end in once told to; DRAIN_TIMEOUT.")] = None,
    max_client_batch_size: Annotated[
        int | None, typer.Option(help="Documents a request; MAX_CLIENT_BATCH_SIZE.")
    ] = None,
    max_document_tokens: Annotated[int | None, typer.Option(help="Tokens a document; MAX_DOCUMENT_TOKENS.")] = None,
    payload_limit: Annotated[int | None, typer.Option(help="Bytes a request; PAYLOAD_LIMIT.")] = None,
    tokenization_workers: Annotated[int | None, typer.Option(help="Tokenizer threads; TOKENIZATION_WORKERS.")] = None,
    context_url: Annotated[str | None, typer.Option(help="Endpoint that writes contexts; CONTEXT_URL.")] = None,
    context_model: Annotated[str | None, typer.Option(help="Its language model; CONTEXT_MODEL.")] = None,
    context_api_key: Annotated[str | None, typer.Option(help="Its key; CONTEXT_API_KEY.")] = None,
    context_cache: Annotated[str | None, typer.Option(help="Where they are kept; CONTEXT_CACHE.")] = None,
) -> None:
    """Serve the model over HTTP. Every option may also be given as the environment variable named."""
    given = {name: value for name, value in locals().items() if value is not None}  # named as the settings are
    require("fastapi", purpose="serving", extra="server")
    from server.app import serve as run
    from server.settings import ServerSettings

    run(ServerSettings.of(**given))

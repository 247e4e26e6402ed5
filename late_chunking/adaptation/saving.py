"""What was learnt → a folder that others load."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from late_chunking.adaptation.trainer import Adapted
from late_chunking.encoding.folder import ModelFolder, read_json
from late_chunking.encoding.location import EMBEDDED
from late_chunking.encoding.model import silence
from late_chunking.encoding.prompts import find_prompts

_PROMPTS: Final = "config_sentence_transformers.json"
_LENGTH: Final = "sentence_bert_config.json"
_POOLING: Final = "1_Pooling"
# What a model's folder says of it beside its weights, which are written anew.
_SETTINGS: Final = (".json", ".txt", ".model", ".tiktoken", ".py")
_INDEX: Final = ".index.json"
_WEIGHTS: Final = (".safetensors", ".bin")


def save_adapter(adapted: Adapted, folder: Path) -> None:
    """Write the low-rank matrices alone; they are merged into the model's weights at load.

    Args:
        adapted: what was trained.
        folder: must exist.
    """
    base = adapted.planner.folder
    # A folder's name holds from here only.
    is_folder = base.name != EMBEDDED and base.commit is None
    name = str(base.path.resolve()) if is_folder else base.name
    adapted.trainable.save_adapter(folder, name, base.commit or adapted.planner.settings.revision)
    _write_settings(adapted, folder, folder)


def save_model(adapted: Adapted, folder: Path) -> None:
    """Write a folder of sentence-transformers' with all weights; ends the training.

    Args:
        adapted: what was trained.
        folder: must exist.
    """
    base = adapted.planner.folder
    modules = read_json(base.path / "modules.json", kind=list) or []
    for part in {"", *(module["path"] for module in modules)}:
        _copy(base.path / part, folder / part, weights=base.path / part in base.dense)
    transformer = folder / base.transformer.relative_to(base.path)
    module = adapted.trainable.merge()
    with silence():
        module.save_pretrained(transformer)
    if not modules:
        _write_modules(adapted, folder)
    _write_settings(adapted, folder, transformer)


def _copy(source: Path, target: Path, *, weights: bool) -> None:
    """Copy a folder's files, not those of folders in it: settings, and weights if they are not written anew."""
    suffixes = (*_SETTINGS, *(_WEIGHTS if weights else ()))
    for path in sorted(source.iterdir()) if source.is_dir() else []:
        is_adapters = path.name.startswith("adapter_")
        if path.is_file() and path.suffix in suffixes and not path.name.endswith(_INDEX) and not is_adapters:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.name)


def _write_modules(adapted: Adapted, folder: Path) -> None:
    """Say how the vectors are made, for a model whose folder did not."""
    kinds = {"Transformer": "", "Pooling": _POOLING, "Normalize": "2_Normalize"}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds.items())
    ]
    pooling = {
        "word_embedding_dimension": adapted.trainable.network.hidden_size,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_cls_token": False,
    }
    (folder / _POOLING).mkdir(exist_ok=True)
    _write(folder / "modules.json", modules)
    _write(folder / _POOLING / "config.json", pooling)
    if not (folder / _LENGTH).is_file():
        _write(folder / _LENGTH, {"max_seq_length": adapted.planner.folder.window})


def _write_settings(adapted: Adapted, folder: Path, transformer: Path) -> None:
    """Write down the window and the prompts that were trained with, where the folder would not say the same."""
    base: ModelFolder = adapted.planner.folder
    if adapted.planner.settings.window is not None:
        said = read_json(transformer / _LENGTH, default={})
        _write(transformer / _LENGTH, {**said, "max_seq_length": base.window})
    said = read_json(folder / _PROMPTS, default={})
    found = find_prompts("", said, None)
    if (found.query, found.document) != (base.prompts.query, base.prompts.document):
        prompts = {**(said.get("prompts") or {}), "query": base.prompts.query, "document": base.prompts.document}
        _write(folder / _PROMPTS, {**said, "prompts": prompts, "default_prompt_name": None})


def _write(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    """Write JSON for people to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

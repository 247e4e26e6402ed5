"""What was learnt → a folder that others load."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from late_chunking.adaptation.trainer import Adapted
from late_chunking.encoding.folder import ModelFolder
from late_chunking.encoding.model import silence

_PROMPTS: Final = "config_sentence_transformers.json"
# Of the model's folder, what holds weights; they are written anew, in one form.
_WEIGHTS: Final = (
    "*.safetensors",
    "*.safetensors.index.json",
    "*.bin",
    "*.bin.index.json",
    "*.onnx",
    "*.h5",
    "*.msgpack",
)
_OTHER_FORMS: Final = ("onnx", "openvino", ".git", ".cache", "README.md")
_POOLING: Final = "1_Pooling"


def save_adapter(adapted: Adapted, folder: Path) -> None:
    """Write the low-rank matrices alone; they are merged into the model's weights at load.

    Args:
        adapted: what was trained.
        folder: must exist.
    """
    base = adapted.planner.folder
    # A folder's name holds from here alone.
    name = str(Path(base.name).resolve()) if Path(base.name).is_dir() else base.name
    adapted.trainable.save_adapter(folder, name, adapted.planner.settings.revision or base.commit)
    _write_prompts(base, folder)


def save_model(adapted: Adapted, folder: Path) -> None:
    """Write a folder of sentence-transformers' with all weights; ends the training.

    Args:
        adapted: what was trained.
        folder: must exist.
    """
    base = adapted.planner.folder
    shutil.copytree(base.path, folder, ignore=shutil.ignore_patterns(*_WEIGHTS, *_OTHER_FORMS), dirs_exist_ok=True)
    for dense in base.dense:
        for path in (each for pattern in _WEIGHTS for each in dense.glob(pattern)):
            shutil.copy2(path, folder / path.relative_to(base.path))
    module = adapted.trainable.merge()
    with silence():
        module.save_pretrained(folder / base.transformer.relative_to(base.path))
    if not (folder / "modules.json").is_file():
        _write_modules(adapted, folder)
    _write_prompts(base, folder)


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
    _write(folder / "sentence_bert_config.json", {"max_seq_length": adapted.planner.folder.window})


def _write_prompts(base: ModelFolder, folder: Path) -> None:
    """Write down the prompts that were trained with, unless the folder says the same."""
    path = folder / _PROMPTS
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if base.prompts.source in ("folder", "none") and path.is_file():
        return
    prompts = {"query": base.prompts.query, "document": base.prompts.document}
    if any(prompts.values()) or base.prompts.source == "caller":
        _write(path, {**said, "prompts": prompts})


def _write(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    """Write JSON for people to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

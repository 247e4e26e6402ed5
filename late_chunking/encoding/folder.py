"""What a model folder says about itself, read before any weights are.

A folder is one of sentence-transformers' (``modules.json``) or a plain one of transformers'.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from late_chunking.encoding.adapter import CONFIG, Adapter
from late_chunking.encoding.location import EMBEDDED_LATE, locate
from late_chunking.encoding.prompts import Prompts, find_prompts
from late_chunking.errors import InvalidParameter, ModelNotFound, UnsupportedModel

logger = logging.getLogger(__name__)

_SENTENCE_CONFIGS: Final = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
_POOLING_FLAGS: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Their positions start at the padding id + 1, so the table holds fewer than it has rows.
_PADDED_POSITIONS: Final = frozenset(
    (
        "camembert",
        "data2vec-text",
        "longformer",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
    )
)
_SANE_LENGTH: Final = 10**7


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's settings.

    Attributes:
        name: what the caller called it.
        path: where what it says of itself is.
        commit: the hub's commit, if it is in the hub's cache.
        adapter: what is to be merged into its weights, if the name is an adapter's.
        transformer: the folder of the tokenizer and of sentence-transformers' settings of the transformer.
        weights: the folder of the transformer's weights; another one for an adapter that brings the rest along.
        config: its ``config.json``, beside the weights.
        pooling: ``"mean"``, another mode of sentence-transformers', or several joined by ``+``.
        include_prompt: whether pooling takes the prompt's tokens in.
        dense: folders of the Dense modules after pooling, in order.
        normalize: whether a Normalize module comes last.
        lowercase: whether text is lowercased before the tokenizer.
        window: the longest sequence in tokens that the model was trained to read, special
            tokens and prompt included.
        prompts: what is put before queries and documents.
        notes: what a user should know, such as a missing prompt.
    """

    name: str
    path: Path
    commit: str | None
    adapter: Adapter | None
    transformer: Path
    weights: Path
    config: Mapping[str, Any]
    pooling: str
    include_prompt: bool
    dense: tuple[Path, ...]
    normalize: bool
    lowercase: bool
    window: int
    prompts: Prompts
    notes: tuple[str, ...]

    @property
    def may_be_trusted(self) -> bool:
        """Whether code in it may run if the caller says so: not if a fetched adapter, and not the caller, names it."""
        return self.adapter is None or self.adapter.is_local


def read_folder(
    name: str,
    *,
    revision: str | None = None,
    window: int | None = None,
    prompts: Mapping[str, str] | None = None,
    allow_pooling_mismatch: bool = False,
) -> ModelFolder:
    """Find a model and read its settings.

    Args:
        name: ``"embedded"`` or ``"embedded-late"``, a local folder, or a hub id; of a model, or of an
            adapter, whose model is then found by what it says.
        revision: branch, tag or commit on the hub.
        window: read at most so many tokens at once, instead of what the folder says.
        prompts: ``query`` and ``document`` prompts instead of the folder's.
        allow_pooling_mismatch: pool by the mean although the model was trained otherwise.

    Raises:
        ModelNotFound: if there is no such model.
        TamperedModel: if the embedded model's files are not as published.
        UnsupportedModel: if its vectors would be wrong here.
        InvalidParameter: if `window` is not possible.
    """
    found = locate(name, revision)
    adapter = _adapter(found, is_local=name == EMBEDDED_LATE or Path(name).expanduser().is_dir())
    base = found if adapter is None else _base(name, adapter)
    # sentence-transformers writes all it knows of a model beside an adapter; ours, and peft's, are bare.
    path = found if adapter is None or (found / "modules.json").is_file() else base
    modules = read_json(path / "modules.json", kind=list)
    kinds, folders = _modules(name, path, modules)
    transformer = folders[0] if folders else path
    weights = transformer if path == base else _transformer(name, base)
    pooling, include_prompt = _pooling(name, folders, allow_mismatch=allow_pooling_mismatch)
    sentence_config = _sentence_config(found) or _sentence_config(transformer)
    config = required_json(weights / "config.json", f"{name}: the model")
    said = read_json(path / "config_sentence_transformers.json", default={})
    card = name if adapter is None else adapter.base
    in_force = find_prompts(card, read_json(found / "config_sentence_transformers.json", default=said), prompts)
    trained = _trained_lengths(config, transformer, sentence_config)
    return ModelFolder(
        name=name,
        path=path,
        commit=found.name if found.parent.name == "snapshots" else None,
        adapter=adapter,
        transformer=transformer,
        weights=weights,
        config=config,
        pooling=pooling,
        include_prompt=include_prompt,
        dense=tuple(folder for folder, kind in zip(folders, kinds, strict=True) if kind == "Dense"),
        normalize="Normalize" in kinds,
        lowercase=bool(sentence_config.get("do_lower_case", False)),
        window=_window(name, config, trained, window),
        prompts=in_force,
        notes=(*in_force.notes, *_notes(modules is None, pooling, trained, window)),
    )


def _adapter(path: Path, *, is_local: bool) -> Adapter | None:
    """Tell an adapter's folder from a model's."""
    config = read_json(path / CONFIG)
    return None if config is None else Adapter.of(path, config, is_local=is_local)


def _base(name: str, adapter: Adapter) -> Path:
    """Find the model that an adapter belongs to."""
    if not adapter.is_local and (adapter.base.startswith(("/", ".", "~")) or Path(adapter.base).exists()):
        raise UnsupportedModel(f"{name}: an adapter of the hub may not name a folder here: {adapter.base!r}")
    path = locate(adapter.base, adapter.revision)
    if (path / CONFIG).is_file():
        raise UnsupportedModel(f"{name}: it is an adapter to another adapter, {adapter.base!r}")
    return path


def _modules(name: str, path: Path, modules: list[Any] | None) -> tuple[list[str], list[Path]]:
    """Give the kinds and folders of a model's modules, refusing an order or kind that we cannot follow."""
    if modules is None:
        return [], []
    for index, module in enumerate(modules):
        if not isinstance(module, dict) or not all(isinstance(module.get(key), str) for key in ("type", "path")):
            raise UnsupportedModel(f"{name}: module {index} of modules.json has no type and path: {module!r:.80}")
        if not (path / module["path"]).resolve().is_relative_to(path.resolve()):
            raise UnsupportedModel(f"{name}: module {index} lies outside the model's folder: {module['path']!r}")
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"]:
        raise UnsupportedModel(f"{name}: its modules are {', '.join(kinds)}; they must begin with Transformer, Pooling")
    for index, kind in enumerate(kinds[2:], start=2):
        if kind not in ("Dense", "Normalize"):
            unknown = modules[index]["type"]
            raise UnsupportedModel(f"{name}: module {index} is {unknown}; only Dense and Normalize are known")
    if "Normalize" in kinds[:-1]:
        raise UnsupportedModel(f"{name}: its modules are {', '.join(kinds)}; Normalize must come last, once")
    return kinds, [path / module["path"] for module in modules]


def _transformer(name: str, path: Path) -> Path:
    """Give the folder of a model's transformer."""
    folders = _modules(name, path, read_json(path / "modules.json", kind=list))[1]
    return folders[0] if folders else path


def _pooling(name: str, folders: Sequence[Path], *, allow_mismatch: bool) -> tuple[str, bool]:
    """Read how a model pools, and whether it pools its prompt; refuse what our means would not be like."""
    config = required_json(folders[1] / "config.json", f"{name}: the Pooling module") if folders else {}
    mode = _pooling_mode(config)
    if mode != "mean" and not allow_mismatch:
        raise UnsupportedModel(
            f"{name}: the model pools by {mode}, not by the mean, so means over spans would lie in another space "
            "than its queries; allow_pooling_mismatch overrides this"
        )
    return mode, bool(config.get("include_prompt", True))


def _pooling_mode(config: Mapping[str, Any]) -> str:
    """Read a pooling configuration, of the old form (flags) or the new one (names)."""
    modes = config.get("pooling_mode") or [mode for flag, mode in _POOLING_FLAGS.items() if config.get(flag)]
    if isinstance(modes, list):
        return "+".join(str(mode) for mode in modes) or "mean"
    return str(modes)


def _sentence_config(transformer: Path) -> dict[str, Any]:
    """Read sentence-transformers' settings of the transformer, under whichever name they have."""
    for filename in _SENTENCE_CONFIGS:
        config = read_json(transformer / filename)
        if config is not None:
            return dict(config)
    return {}


def _trained_lengths(
    config: Mapping[str, Any], transformer: Path, sentence_config: Mapping[str, Any]
) -> dict[str, int]:
    """Give every length that a folder says its model reads, by who says so."""
    tokenizer_config = read_json(transformer / "tokenizer_config.json", default={})
    positions = _length(config.get("max_position_embeddings")) or _length(config.get("n_positions"))
    if positions and config.get("model_type") in _PADDED_POSITIONS:
        positions -= (_length(config.get("pad_token_id")) or 0) + 1
    said = {
        "positions": positions,
        "max_seq_length": _length(sentence_config.get("max_seq_length")),
        "model_max_length": _length(tokenizer_config.get("model_max_length")),
    }
    return {source: length for source, length in said.items() if length}


def _window(name: str, config: Mapping[str, Any], trained: Mapping[str, int], asked: int | None) -> int:
    """Give the longest sequence to read: the least that the folder says, or what is asked for."""
    if asked is None:
        if not trained:
            raise UnsupportedModel(f"{name}: the folder does not say how many tokens the model reads; give window")
        return min(trained.values())
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise InvalidParameter(f"window must be an integer of at least 1, got {asked!r}")
    if trained.get("positions", asked) < asked and not _stretches(config):
        raise InvalidParameter(f"window {asked} is more than the {trained['positions']} positions of {name}")
    return asked


def _notes(plain: bool, pooling: str, trained: Mapping[str, int], asked: int | None) -> list[str]:
    """Say what a user of the model should be aware of."""
    notes = []
    if plain:
        notes.append("the folder does not say how it pools (no modules.json); the mean is taken")
    if asked and trained and asked > min(trained.values()):
        notes.append(f"reads {asked} tokens at once although the model was trained on {min(trained.values())}")
    if pooling != "mean":
        notes.append(f"pools by the mean although the model was trained with {pooling}")
    return notes


def _length(value: object) -> int | None:
    """Read a length; None for what is none, and for the 10³⁰ of tokenizers without a limit."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < _SANE_LENGTH:
        return None
    return int(value)


def _stretches(config: Mapping[str, Any]) -> bool:
    """Tell whether a model's rotary positions are made for texts beyond its table of positions."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling")
    if not isinstance(scaling, Mapping):
        return False
    return (scaling.get("rope_type") or scaling.get("type") or "default") != "default"


def required_json(path: Path, owner: str) -> dict[str, Any]:
    """Read a JSON object that must be there.

    Raises:
        ModelNotFound: if it is not, naming whose it should be.
    """
    content = read_json(path)
    if content is None:
        raise ModelNotFound(f"{owner} has no {path.name} in {path.parent}; is it a model folder?")
    return dict(content)


def read_json(path: Path, *, default: Any = None, kind: type = dict) -> Any:  # noqa: ANN401 - JSON
    """Read a JSON file that holds an object (or a list), or give the default where there is none."""
    if not path.is_file():
        return default
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelNotFound(f"{path} cannot be read: {error}") from error
    if not isinstance(content, kind):
        raise ModelNotFound(f"{path} must hold {'an object' if kind is dict else 'a list'}, not {content!r:.40}")
    return content

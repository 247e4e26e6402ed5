"""Training: its parts against plain ones, its result against other tools, its errors before any work."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from late_chunking import Document, LateChunker, errors
from late_chunking.adaptation.adapters import Trainable
from late_chunking.adaptation.checkpoint import FILE, PARTIAL, Checkpoint
from late_chunking.adaptation.loss import contrastive
from late_chunking.adaptation.plan import Training
from late_chunking.adaptation.questions import INSTRUCTION, cloze_queries, written_questions
from late_chunking.adaptation.steps import Steps
from late_chunking.adaptation.trainer import Trainer
from late_chunking.adaptation.training_set import TrainingSet, parted, split
from late_chunking.adaptation.vectors import differentiable_vectors
from late_chunking.adaptation.verdict import Change, judge
from late_chunking.cli import app
from late_chunking.documents import Span
from late_chunking.encoding.model import Network
from late_chunking.encoding.selfcheck import choose_encoder
from late_chunking.evaluation import Dataset, Interval, Query, Store, compare, make_arms, make_cuttings, read_dataset
from late_chunking.planning import Planner
from late_chunking.request import Request
from late_chunking.settings import Settings
from late_chunking.writer import ContextWriter
from tests.models import save_folder
from tests.test_sharding import LAUNCH
from tests.test_writer import Endpoint, endpoint  # noqa: F401 - a fixture
from tests.towns import NAMES, towns, write_towns

ROOT = Path(__file__).parent.parent
TALES = ROOT.parent / "shared" / "evaldata" / "fairytaleqa_val"
BRIEF = Training(documents_per_step=3, evaluate_every=2, patience=9)
KEPT, HELD = towns(12), towns(6, 12, "held")


def loaded(model: str = "embedded", rank: int | None = 4) -> tuple[LateChunker, Trainable]:
    """A model, part of which is trained."""
    planner = Planner.load(Settings(model=model, device="cpu"))
    network = Network.load(planner.folder, device="cpu", dtype="float32")
    choice = choose_encoder(network, planner.folder.window, fixed=False)
    trainable = Trainable(network, choice.encoder, planner.folder.window, rank, 0)
    return LateChunker.around(planner, network, choice), trainable


# --- the loss


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**31))
def test_the_loss_is_what_it_says(count: int, chunks: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, vectors = (
        torch.nn.functional.normalize(torch.randn(rows, 5, generator=generator, dtype=torch.float64), dim=1)
        for rows in (count, chunks)
    )
    relevant = torch.rand(count, chunks, generator=generator) < 0.4
    losses = []
    for query, row in zip(queries, relevant, strict=True):
        others = [float(torch.exp(7.0 * query @ chunk)) for chunk, hit in zip(vectors, row, strict=True) if not hit]
        own = [float(torch.exp(7.0 * query @ chunk)) for chunk, hit in zip(vectors, row, strict=True) if hit]
        if own and others:
            losses.append(np.mean([-np.log(one / (one + sum(others))) for one in own]))
    expected = np.mean(losses) if losses else 0.0
    queries.requires_grad_()
    found = contrastive(queries, vectors, relevant, 7.0)
    assert float(found.detach()) == pytest.approx(expected, abs=1e-9)
    found.backward()
    assert torch.isfinite(queries.grad).all()


# --- vectors that gradients pass


@pytest.mark.parametrize("mode", ["late", "naive"])
def test_trained_vectors_are_those_of_inference(mode: str, embedded: LateChunker) -> None:
    chunker, _ = loaded()
    documents = [*towns(3).documents, Document("word " * 700, id="long")]
    request = Request.of("tokens", {"size": 40, "mode": mode})
    plans = [chunker.planner.plan(document, request) for document in documents]
    vectors = differentiable_vectors(chunker, plans)
    assert vectors.requires_grad
    expected = [embedded.embed(document, strategy="tokens", size=40, mode=mode).vectors for document in documents]
    np.testing.assert_allclose(vectors.detach().numpy(), np.concatenate(expected), atol=2e-6)


def test_gradients_are_those_of_a_plain_network(tmp_path: Path) -> None:
    """Packed, with frozen layers through oneDNN and local attention, against transformers' own way."""
    folder = save_folder(tmp_path, window=512)
    text = "The ferry carries salt. " * 40
    chunker, trainable = loaded(str(folder))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trainable.parameters.values():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    (plan,) = chunker.plan_texts([text])
    weights = torch.randn(chunker.head.dimensions, generator=generator)
    (differentiable_vectors(chunker, [plan])[0] @ weights).backward()
    assert len(plan.sequences) == 1
    assert len(plan.sequences[0]) > 300  # so that local layers have blocks with neighbours on both sides
    packed = {name: parameter.grad.clone() for name, parameter in trainable.parameters.items()}

    module = chunker.network.module
    trainable.restore()
    module.set_attn_implementation("sdpa")
    for parameter in trainable.parameters.values():
        parameter.grad = None
    ids = torch.from_numpy(plan.sequences[0].ids)[None]
    hidden = module(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
    mean = chunker.head.mapped(hidden.mean(dim=0, keepdim=True))
    (torch.nn.functional.normalize(mean, dim=1)[0] @ weights).backward()
    assert any(float(gradient.abs().max()) > 1e-4 for gradient in packed.values())
    for name, parameter in trainable.parameters.items():
        torch.testing.assert_close(packed[name], parameter.grad, atol=1e-5, rtol=1e-3)


# --- what is drawn


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 99))
def test_each_epoch_reads_each_document_once(documents: int, each: int, seed: int) -> None:
    steps = Steps(documents, Training(documents_per_step=each, epochs=2, seed=seed), 256)
    drawn = [steps.step(number) for number in range(steps.total)]
    assert drawn == [steps.step(number) for number in range(steps.total)]
    for epoch in range(2):
        part = drawn[epoch * steps.per_epoch : (epoch + 1) * steps.per_epoch]
        assert sorted(place for step in part for place in step.documents) == list(range(documents))


def test_steps_vary_and_the_rate_rises_and_falls() -> None:
    steps = Steps(100, Training(documents_per_step=1, naive_share=0.25), 256)
    drawn = [steps.step(number) for number in range(100)]
    assert {step.strategy.name for step in drawn} == {"tokens", "words", "sentences", "recursive"}
    assert len({step.strategy for step in drawn}) > 50
    assert 10 < Counter(step.mode for step in drawn)["naive"] < 40
    rates = [steps.rate(number) for number in range(100)]
    assert max(rates) == 1.0
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.01
    assert Steps(9, Training(naive_share=1.0), 256).step(0).mode == "naive"


# --- documents and queries


def test_a_training_set_needs_two_documents_with_queries() -> None:
    with pytest.raises(errors.InvalidDataset, match=r"at least 2 documents are needed to train on, got 1"):
        TrainingSet.of(towns(1))
    with pytest.raises(errors.InvalidDataset, match="of 3 documents with queries, 2 would be held back"):
        split(towns(3), 0)
    spaced = Dataset("spaced", (Document("a  b", id="a"), Document("c", id="c")), towns(2).queries[:0])
    asked = [Query("7", "?", {"a": [Span(1, 3)]}), Query("8", "?", {"c": [Span(0, 1)]})]
    with pytest.raises(errors.InvalidDataset, match="query '7': its answer in 'a' is white space"):
        TrainingSet.of(replace(spaced, queries=tuple(asked)))


@given(st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=20), st.integers(0, 9))
def test_held_back_documents_are_not_trained_on(golds: list[set[int]], seed: int) -> None:
    documents = tuple(Document(f"text {place}", id=f"d{place}") for place in range(10))
    queries = tuple(
        Query(str(place), "?", {f"d{one}": [Span(0, 4)] for one in gold}) for place, gold in enumerate(golds)
    )
    dataset = Dataset("some", documents, queries)
    try:
        kept, held = split(dataset, seed)
    except errors.InvalidDataset:
        return
    assert split(dataset, seed) == (kept, held)
    assert {document.id for document in kept.documents}.isdisjoint(document.id for document in held.documents)
    assert len(kept.documents) + len(held.documents) == 10
    assert sorted([*kept.queries, *held.queries], key=lambda query: int(query.id)) == list(queries)
    for side in (kept, held):
        assert len({name for query in side.queries for name in query.gold}) >= 2


def test_parts_keep_the_text_of_what_answers(embedded: LateChunker) -> None:
    dataset = towns(4)
    both = Query("both", "?", {NAMES[0]: [Span(0, 5)], NAMES[1]: [Span(0, 5)]})
    dataset = replace(dataset, queries=(*dataset.queries, both))
    found = parted(dataset, embedded.planner, 30)
    assert len(found.documents) > 20
    texts = {document.id: document.text for document in dataset.documents}
    parts = {document.id: document.text for document in found.documents}
    for document in found.documents:
        assert document.text in texts[document.id.partition("#")[0]]
    assert len({document.id for document in found.documents}) == len(found.documents)
    for before, after in zip(dataset.queries, found.queries, strict=True):
        assert (before.id, before.text) == (after.id, after.text)
        assert {name.partition("#")[0] for name in after.gold} == before.gold.keys()
        for name, spans in after.gold.items():
            whole = name.partition("#")[0]
            answers = [texts[whole][slice(*span)] for span in before.gold[whole]]
            assert all(parts[name][slice(*span)] in answer for span in spans for answer in answers)
            assert all(2 * (high - low) >= len(answers[0]) for low, high in spans)
    assert parted(dataset, embedded.planner, 8_192) == dataset


def test_sentences_taken_out_are_gone_and_their_places_are_found(embedded: LateChunker) -> None:
    lines = [[f"Line {line} of text {text} says something of its own." for line in range(20)] for text in range(4)]
    documents = tuple(
        Document("\n\n".join(" ".join(own[start : start + 5]) for start in range(0, 20, 5)), id=f"d{text}")
        for text, own in enumerate(lines)
    )
    before = Dataset("lines", documents, ())
    taken = cloze_queries(before, embedded.planner, seed=0)
    assert cloze_queries(before, embedded.planner, seed=0) == taken
    assert cloze_queries(before, embedded.planner, seed=1) != taken
    assert len(taken.queries) > 6
    for own, original, document in zip(lines, documents, taken.documents, strict=True):
        gone = {query.text: query.gold[original.id] for query in taken.queries if original.id in query.gold}
        kept = [line for line in own if line not in gone]
        assert document.text.split() == " ".join(kept).split()
        assert document.text.count("\n\n") in (2, 3)
        for text, ((low, high),) in gone.items():
            place = own.index(text)
            assert document.text[low:high].split() == f"{own[place - 1]} {own[place + 1]}".split()


def test_questions_are_asked_of_a_language_model(endpoint: Endpoint, embedded: LateChunker) -> None:  # noqa: F811
    dataset = towns(2)
    with_queries = written_questions(
        dataset,
        embedded.planner,
        ContextWriter(endpoint.url, "some-model", instruction=INSTRUCTION),
        per_document=1,
        seed=0,
    )
    assert len(with_queries.queries) == 2
    assert all("Write one question" in body["messages"][1]["content"] for body in endpoint.bodies)
    for query, body in zip(with_queries.queries, endpoint.bodies, strict=True):
        ((name, spans),) = query.gold.items()
        text = next(document.text for document in dataset.documents if document.id == name)
        assert text[slice(*spans[0])] in body["messages"][1]["content"]
        assert query.text
    TrainingSet.of(with_queries)


# --- the verdict


def test_a_model_is_called_better_only_if_it_is() -> None:
    held = towns(12)
    few = towns(4)
    up, down, none = Interval(0.01, 0.05, 0.09), Interval(-0.09, -0.05, -0.01), Interval(-0.01, 0.02, 0.05)

    def said(*found: tuple[str, str, Interval]) -> tuple[bool, str]:
        verdict = judge([Change(data, mode, 0.5, 0.55, interval) for data, mode, interval in found], held)
        return verdict.better, verdict.why

    assert said(("towns", "late", up), ("towns", "naive", none), ("other", "late", none))[0]
    assert not said(("towns", "late", none))[0]
    better, why = said(("towns", "late", up), ("other", "naive", down))
    assert not better
    assert "worse elsewhere: naive on other" in why
    assert "too few" in judge([Change("towns", "late", 0.5, 0.6, up)], few).why


# --- whole runs


def trained(tmp_path: Path, *arguments: str) -> Path:
    """Run the command in this process; a few steps are enough to learn something."""
    data, held = write_towns(tmp_path / "data"), write_towns(tmp_path / "held", 6, 12)
    out = tmp_path / "out"
    command = ["adapt", str(data), "--out", str(out), "--held-back", str(held), "--evaluate-every", "2"]
    result = CliRunner().invoke(app, [*command, "--documents-per-step", "4", *arguments])
    assert result.exit_code == 0, result.output
    report = json.loads((out / "report.json").read_text())
    assert report["best_step"] > 0
    assert max(report["held_back"].values()) > report["held_back"]["0"]
    return out


@pytest.mark.parametrize(
    "arguments", [(), pytest.param(("--whole", "--learning-rate", "0.0003"), marks=pytest.mark.slow)], ids=str
)
def test_other_tools_load_what_was_trained(tmp_path: Path, embedded: LateChunker, arguments: tuple[str, ...]) -> None:
    out = trained(tmp_path, *arguments)
    report = json.loads((out / "report.json").read_text())
    assert report["steps"] == len(report["losses"]) == 3
    assert [(one["data"], one["mode"]) for one in report["changes"]] == [
        ("held", mode) for mode in ("naive", "late", "blend")
    ]
    assert not (out / FILE).exists()
    texts = [
        "The ferry carries salt.",
        "Who built the tower?",
        *(document.text[:600] for document in towns(3).documents),
    ]
    ours = LateChunker(str(out), device="cpu")
    theirs = SentenceTransformer(str(out), device="cpu", backend="torch", local_files_only=True)
    np.testing.assert_allclose(ours.embed_texts(texts), theirs.encode(texts, normalize_embeddings=True), atol=1e-5)
    assert np.abs(ours.embed_texts(texts) - embedded.embed_texts(texts)).max() > 1e-3
    assert ours.info().base_model is None


def test_an_adapter_is_small_and_merged_at_load(tmp_path: Path, embedded: LateChunker) -> None:
    out = trained(tmp_path, "--adapter", "--rank", "4", "--query-prompt", "find: ", "--window", "128")
    assert sum(path.stat().st_size for path in out.iterdir()) < 500_000
    weights = load_file(out / "adapter_model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    assert all(weight.any() for weight in weights.values())
    ours = LateChunker(str(out), device="cpu")
    info = ours.info()
    assert (info.base_model, info.query_prompt, info.window) == ("embedded", "find: ", 128)
    # By hand: W + B A · alpha / r, alpha being twice the rank.
    theirs = SentenceTransformer(str(embedded.planner.folder.path), device="cpu", local_files_only=True)
    module = theirs[0].auto_model
    text = "The ferry carries salt."
    before = theirs.encode([text], normalize_embeddings=True)
    for name, weight in weights.items():
        if ".lora_A." in name:
            path = name.removeprefix("base_model.model.").partition(".lora_A")[0]
            product = weights[name.replace("lora_A", "lora_B")].float() @ weight.float()
            module.get_submodule(path).weight.data += 2.0 * product
    expected = theirs.encode([text], normalize_embeddings=True)
    assert np.abs(expected - before).max() > 1e-3
    np.testing.assert_allclose(ours.embed_texts([text]), expected, atol=1e-5)


def adapter_for(base: Path, folder: Path) -> Path:
    """An adapter with something in it, made without training."""
    _, trainable = loaded(str(base))
    with torch.no_grad():
        for parameter in trainable.parameters.values():
            parameter.add_(0.05)
    folder.mkdir()
    trainable.save_adapter(folder, str(base), None)
    return folder


def test_merging_leaves_rotary_frequencies_as_they_are(tmp_path: Path) -> None:
    base = save_folder(tmp_path / "base", window=128)
    adapter = adapter_for(base, tmp_path / "adapter")
    plain = LateChunker(str(base), device="cpu", dtype="bfloat16").network.module
    merged = LateChunker(str(adapter), device="cpu", dtype="bfloat16").network.module
    assert {parameter.dtype for parameter in merged.parameters()} == {torch.bfloat16}
    buffers = dict(merged.named_buffers())
    assert buffers
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(buffers[name], buffer, atol=0, rtol=0)


def test_what_stands_beside_an_adapter_is_followed(tmp_path: Path, embedded: LateChunker) -> None:
    """As sentence-transformers writes it: modules, pooling and length are the adapter's own."""
    base = embedded.planner.folder.path
    folder = adapter_for(base, tmp_path / "adapter")
    for name in ("modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((base / name).read_bytes())
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))
    (folder / "1_Pooling").mkdir()
    pooling = json.loads((base / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    chunker = LateChunker(str(folder), device="cpu")
    assert (chunker.info().window, chunker.info().base_model) == (64, str(base))
    other = {**pooling, "pooling_mode": "cls", "pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(other))
    with pytest.raises(errors.UnsupportedModel, match="pools by cls"):
        LateChunker(str(folder), device="cpu")


def test_what_does_not_fit_is_an_error(tmp_path: Path, embedded: LateChunker) -> None:
    out = adapter_for(embedded.planner.folder.path, tmp_path / "out")
    config = json.loads((out / "adapter_config.json").read_text())
    other = save_folder(tmp_path / "other", window=64)
    nested = tmp_path / "nested"

    def refused(kind: type[Exception], match: str, **changed: object) -> None:
        (out / "adapter_config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(kind, match=match):
            LateChunker(str(out), device="cpu")

    refused(errors.UnsupportedModel, "must name a model, got None", base_model_name_or_path=None)
    refused(errors.UnsupportedModel, "does not fit", base_model_name_or_path=str(other))
    refused(errors.UnsupportedModel, "does not fit", r=3)
    refused(errors.UnsupportedModel, "missing or too many", target_modules=["query"])
    nested.mkdir()
    (nested / "adapter_config.json").write_text(json.dumps(config))
    refused(errors.UnsupportedModel, "adapter to another adapter", base_model_name_or_path=str(nested))
    (out / "adapter_model.safetensors").write_bytes(b"nothing")
    refused(errors.ModelNotFound, "cannot be read")


def test_a_fetched_adapter_may_not_name_a_folder_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = tmp_path / "snapshots" / "abc"
    cached.mkdir(parents=True)
    monkeypatch.setattr("late_chunking.encoding.location._fetch", lambda name, revision: cached)
    for base in (str(tmp_path), "~/model", "./model"):
        (cached / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
        with pytest.raises(errors.UnsupportedModel, match="may not name a folder here"):
            LateChunker("somebody/adapter", device="cpu")


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner.load(Settings(model="embedded", device="cpu"))
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.mkdir()
    part.mkdir()
    straight = Trainer(planner, KEPT, HELD, BRIEF).train(whole)
    assert straight.end.best_step > 0
    monkeypatch.setattr("late_chunking.adaptation.trainer._SAVED_EVERY", 0.0)

    def stop(done: int, total: int, loss: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Trainer(planner, KEPT, HELD, BRIEF).train(part, stepped=stop)
    assert Checkpoint.load(part, straight.end.run).step == 3
    ended = Trainer(planner, KEPT, HELD, BRIEF).train(part)
    assert ended.end.losses == straight.end.losses
    assert ended.end.measures == straight.end.measures
    for found, expected in (
        (ended.end.parameters, straight.end.parameters),
        (ended.trainable.state(), straight.trainable.state()),
    ):
        assert any(weight.any() for name, weight in expected.items() if "lora_B" in name)
        for name, weight in expected.items():
            torch.testing.assert_close(found[name], weight, atol=0, rtol=0)
    with pytest.raises(errors.InvalidParameter, match="other settings"):
        Trainer(planner, KEPT, HELD, replace(BRIEF, seed=1)).train(part)


def test_training_ends_when_nothing_is_gained(tmp_path: Path) -> None:
    training = Training(documents_per_step=1, evaluate_every=1, patience=2, learning_rate=1e-12)
    adapted = Trainer(Planner.load(Settings(model="embedded", device="cpu")), KEPT, HELD, training).train(tmp_path)
    assert adapted.end.step == 2
    assert adapted.end.best_step == 0


def test_bad_input_is_refused_before_any_work(tmp_path: Path) -> None:
    data = write_towns(tmp_path / "data")
    one = write_towns(tmp_path / "one", 1)
    bare = write_towns(tmp_path / "bare")
    (bare / "queries.jsonl").unlink()
    wrong = write_towns(tmp_path / "wrong")
    (wrong / "queries.jsonl").write_text(json.dumps({"query": "?", "doc_id": NAMES[0], "spans": [[0, 9_999]]}))
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("dear")

    def refused(*arguments: object, match: str) -> None:
        result = CliRunner().invoke(app, ["adapt", *map(str, arguments), "--model", "/nowhere/at/all"])
        assert isinstance(result.exception, errors.LateChunkingError), result.output
        assert match in str(result.exception)

    out = tmp_path / "out"
    refused(one, "--out", out, match="of 1 documents with queries, 2 would be held back")
    refused(one, "--out", out, "--held-back", data, match="at least 2 documents are needed to train on, got 1")
    refused(bare, "--out", out, match="there are no queries")
    refused(wrong, "--out", out, match="outside the text")
    refused(data, "--out", full, match="it is not empty")
    refused(data, "--out", out, "--held-back", one, match="at least 2 documents are needed to evaluate by, got 1")
    refused(data, "--out", out, "--whole", "--adapter", match="trains no low-rank matrices")
    refused(data, "--out", out, "--whole", "--rank", "3", match="trains no low-rank matrices")
    refused(data, "--out", out, "--questions", "3", match="--questions goes with --queries written")
    refused(data, "--out", out, "--queries", "written", match="needs --questions-url")
    refused(data, "--out", out, "--queries", "guessed", match="must be one of given, written, sentences")
    refused(data, "--out", out, "--naive-share", "2", match="naive_share must be a number from 0 to 1")
    refused(data, "--out", out, "--epochs", "0", match="epochs must be a number above 0")
    assert not out.exists()


# --- the adapter that is brought along


def test_embedded_late_is_the_embedded_model_and_its_adapter(
    embedded: LateChunker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    chunker = LateChunker("embedded-late", device="cpu")
    info, before = chunker.info(), embedded.info()
    assert (info.model, info.base_model) == ("embedded-late", "embedded")
    assert (info.window, info.dimensions, info.encoder) == (before.window, before.dimensions, "packed")
    folder = ROOT / "late_chunking" / "adapters" / "embedded-late"
    assert (folder / "adapter_model.safetensors").stat().st_size < 1_500_000
    report = json.loads((folder / "report.json").read_text())
    assert report["better"]
    assert report["base_model"] == "embedded"
    assert "Apache" in (folder / "README.md").read_text()
    weights = chunker.network.module.state_dict()
    assert not any("lora" in name for name in weights)


@pytest.mark.slow
@pytest.mark.skipif(not TALES.exists(), reason="the shared data are not here")
def test_embedded_late_finds_more() -> None:
    """Over tales that it was not trained on, in windows of 50 words."""
    arms = make_arms("", make_cuttings(["words"], [50]), ["late"])
    (found,) = compare(LateChunker("embedded-late", device="cpu"), read_dataset(TALES), arms, Store(None))
    assert found.corpus["ndcg@10"].mean() >= 0.46


# --- in processes of their own


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "late_chunking", "adapt", *map(str, arguments)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    data, held = write_towns(tmp_path / "data"), write_towns(tmp_path / "held", 6, 12)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    slowly = ("--held-back", held, "--documents-per-step", 1, "--evaluate-every", 3, "--epochs", 2, "--patience", 99)
    subprocess.run(command(data, "--out", straight, "--adapter", *slowly), env=ENVIRONMENT, check=True, timeout=200)
    with subprocess.Popen(command(data, "--out", killed, "--adapter", *slowly), env=ENVIRONMENT) as running:
        for _ in range(2_000):
            if (killed / FILE).is_file():
                break
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
    assert (killed / FILE).is_file()
    assert not (killed / "report.json").exists()
    (killed / PARTIAL).write_bytes(b"half")  # as if it had been killed while it wrote
    subprocess.run(command(data, "--out", killed, "--adapter", *slowly), env=ENVIRONMENT, check=True, timeout=200)
    first, second = (load_file(folder / "adapter_model.safetensors") for folder in (straight, killed))
    assert first.keys() == second.keys()
    assert all(weight.any() for weight in first.values())
    for name, weight in first.items():
        torch.testing.assert_close(second[name], weight, atol=0, rtol=0)
    assert not list(killed.glob("*checkpoint*")) + list(killed.glob(".checkpoint*"))


GRADIENTS = """
import sys
import torch
from late_chunking.adaptation import Trainer, Training
from late_chunking.encoding.device import leave_launch
from late_chunking.planning import Planner
from late_chunking.settings import Settings
from tests.towns import towns
training = Training(documents_per_step=5, rank=None if sys.argv[2] == "whole" else 4)
trainer = Trainer(Planner.load(Settings(model="embedded")), towns(12), towns(6, 12, "held"), training)
found = {}
for number in range(2):
    loss = trainer.gradients(trainer.steps.step(number))
    parameters = trainer.trainable.parameters.items()
    found[number] = (loss, {name: None if each.grad is None else each.grad.clone() for name, each in parameters})
torch.save(found, f"{sys.argv[1]}/{trainer.accelerator.process_index}.pt")
leave_launch()
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["matrices", "whole"])
def test_two_processes_have_the_losses_and_gradients_of_one(tmp_path: Path, what: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(GRADIENTS)
    for name, start in (("one", [sys.executable]), ("two", LAUNCH)):
        (tmp_path / name).mkdir()
        subprocess.run([*start, str(script), str(tmp_path / name), what], env=ENVIRONMENT, check=True, timeout=250)
    one, *two = (torch.load(tmp_path / name) for name in ("one/0.pt", "two/0.pt", "two/1.pt"))
    for number, (loss, gradients) in one.items():
        assert loss > 0.1
        for other_loss, other in (each[number] for each in two):
            assert other_loss == pytest.approx(loss, abs=1e-4)
            for parameter, gradient in gradients.items():
                if gradient is None:
                    assert other[parameter] is None
                else:
                    torch.testing.assert_close(other[parameter], gradient, atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_two_processes_learn_as_one(tmp_path: Path) -> None:
    data, held = write_towns(tmp_path / "data"), write_towns(tmp_path / "held", 6, 12)
    losses = []
    for out, start in ((tmp_path / "one", [sys.executable]), (tmp_path / "two", LAUNCH)):
        arguments = ["-m", "late_chunking", "adapt", str(data), "--out", str(out), "--held-back", str(held)]
        more = ["--documents-per-step", "4", "--epochs", "2", "--evaluate-every", "3", "--adapter"]
        subprocess.run([*start, *arguments, *more], env=ENVIRONMENT, check=True, timeout=250)
        losses.append(json.loads((out / "report.json").read_text())["losses"])
    assert len(losses[0]) == 6
    assert min(losses[0]) > 0.01
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.02)

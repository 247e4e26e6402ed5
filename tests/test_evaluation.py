"""Evaluation: data in every layout, measures against plain ones, arms against their definitions."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from late_chunking import Document, LateChunker, errors
from late_chunking.cli import app
from late_chunking.documents import Span
from late_chunking.evaluation import (
    ArmResult,
    Dataset,
    Query,
    Store,
    compare,
    difference,
    make_arms,
    make_cuttings,
    read_dataset,
)
from late_chunking.evaluation import comparison as comparison_module
from late_chunking.evaluation.measures import characters, ranked
from late_chunking.evaluation.relevance import is_relevant
from late_chunking.evaluation.report import rows, suggest

CITIES = {
    "Berlin": ("the capital of Germany", "3.8 million", "the Spree", "sausages with curry"),
    "Oslo": ("the capital of Norway", "0.7 million", "a fjord", "brown cheese"),
    "Rome": ("the capital of Italy", "2.8 million", "the Tiber", "pasta with pepper"),
    "Cairo": ("the capital of Egypt", "10 million", "the Nile", "lentils with rice"),
}


def city(name: str) -> str:
    state, people, water, food = CITIES[name]
    return (
        f"{name} is {state}.\n\nThe city has {people} inhabitants. Their number grows every year.\n\n"
        f"It lies on {water}, and ships call there.\n\nPeople there like to eat {food}."
    )


def queries() -> list[dict[str, object]]:
    made = []
    for name, (_, people, water, food) in CITIES.items():
        text = city(name)
        for question, answer in (
            (f"How many people live in {name}?", f"The city has {people} inhabitants."),
            (f"What water does {name} lie on?", f"It lies on {water}"),
            (f"What do they eat in {name}?", f"People there like to eat {food}."),
        ):
            start = text.index(answer)
            made.append({"query": question, "doc_id": name.lower(), "spans": [[start, start + len(answer)]]})
    return made


def write(path: Path, records: Sequence[dict]) -> None:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four cities and twelve questions."""
    folder = tmp_path / "cities"
    folder.mkdir()
    records = [
        {"id": name.lower(), "title": name, "text": city(name), "continent": "Africa" if name == "Cairo" else "Europe"}
        for name in CITIES
    ]
    write(folder / "documents.jsonl", records)
    write(folder / "queries.jsonl", queries())
    return folder


@pytest.fixture
def dataset(folder: Path) -> Dataset:
    return read_dataset(folder)


def test_a_folder_of_records(dataset: Dataset) -> None:
    assert dataset.name == "cities"
    assert [document.id for document in dataset.documents] == ["berlin", "oslo", "rome", "cairo"]
    assert dataset.documents[3].metadata == {"continent": "Africa"}
    assert len(dataset.queries) == 12
    ((start, end),) = dataset.queries[0].gold["berlin"]
    assert city("Berlin")[start:end] == "The city has 3.8 million inhabitants."


def test_a_folder_of_text_files_with_quoted_answers(tmp_path: Path) -> None:
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "oslo.md").write_text(city("Oslo"), encoding="utf-8")
    (tmp_path / "berlin.txt").write_bytes(city("Berlin").replace("\n", "\r\n").encode())
    write(tmp_path / "queries.jsonl", [{"query": "cheese?", "doc_id": "north/oslo.md", "answer": "brown cheese"}])
    dataset = read_dataset(tmp_path)
    assert [document.id for document in dataset.documents] == ["berlin.txt", "north/oslo.md"]
    assert "\r\n" in dataset.documents[0].text
    ((start, end),) = dataset.queries[0].gold["north/oslo.md"]
    assert dataset.documents[1].text[start:end] == "brown cheese"
    wrapped = {"query": "how many?", "doc_id": "berlin.txt", "answer": "Germany.\n The city has\n3.8 million"}
    (tmp_path / "queries.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(wrapped).encode())
    ((start, end),) = read_dataset(tmp_path).queries[0].gold["berlin.txt"]
    assert city("Berlin").replace("\n", "\r\n")[start:end] == "Germany.\r\n\r\nThe city has 3.8 million"


def test_beirs_layout_looks_for_whole_documents(tmp_path: Path, embedded: LateChunker) -> None:
    write(tmp_path / "corpus.jsonl", [{"_id": name, "title": name, "text": city(name)} for name in CITIES])
    write(tmp_path / "queries.jsonl", [{"_id": f"q{name}", "text": f"Where is {name}?"} for name in CITIES])
    (tmp_path / "qrels").mkdir()
    lines = "".join(f"q{name}\t{name}\t1\n" for name in CITIES) + "qOslo\tRome\t0\n"
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    dataset = read_dataset(tmp_path)
    assert dataset.whole
    assert len(dataset.queries) == 4
    (result,) = compare(embedded, dataset, make_arms("m", make_cuttings(["paragraphs"], []), ["late"]), Store(None))
    assert result.corpus["hit@1"].tolist() == [1, 1, 1, 1]
    assert result.corpus["ndcg@10"].tolist() == [1, 1, 1, 1]
    assert result.document == {}


@pytest.mark.parametrize(
    ("file", "records", "message"),
    [
        ("documents.jsonl", [{"id": "a"}], r"documents.jsonl:1: text must be text, got None"),
        ("documents.jsonl", [{"id": "a", "text": "x"}] * 2, "documents.jsonl:2: the document 'a' is there twice"),
        ("documents.jsonl", [{"id": "", "text": "x"}], "id must be text that is not empty, got ''"),
        ("queries.jsonl", [], "queries.jsonl: it is empty"),
        ("queries.jsonl", [{"query": "q", "doc_id": "paris", "spans": [[0, 1]]}], "there is no document 'paris'"),
        ("queries.jsonl", [{"query": "q", "doc_id": "osl", "spans": [[0, 1]]}], "did you mean 'oslo'"),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "answer": "OSLO is"}], "it is with other capitals"),
        (
            "queries.jsonl",
            [{"query": "q", "doc_id": "oslo", "spans": [[0, 999]]}],
            r"the span \[0, 999\] is empty",
        ),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "spans": [[5, 5]]}], r"the span \[5, 5\] is empty"),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "spans": [["a", 1]]}], "a span must be two integers"),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "spans": []}], "spans must be a list of at least one"),
        (
            "queries.jsonl",
            [{"query": " ", "doc_id": "oslo", "spans": [[0, 1]]}],
            "query must be text that is not empty",
        ),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "answer": "gold"}], "its answer is not in the document"),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo", "answer": "i"}], "stands in the document more than once"),
        ("queries.jsonl", [{"query": "q", "doc_id": "oslo"}], "answer must be text"),
    ],
)
def test_wrong_data_are_named_by_file_and_line(folder: Path, file: str, records: list, message: str) -> None:
    write(folder / file, records)
    with pytest.raises(errors.InvalidDataset, match=message):
        read_dataset(folder)


def test_data_that_are_no_json_or_not_there(folder: Path, tmp_path: Path) -> None:
    (folder / "queries.jsonl").write_text('{"query": "q"}\n{oops\n')
    with pytest.raises(errors.InvalidDataset, match=r"queries.jsonl:1: doc_id"):
        read_dataset(folder)
    (folder / "queries.jsonl").write_text("\n{oops\n")
    with pytest.raises(errors.InvalidDataset, match=r"queries.jsonl:2: not JSON"):
        read_dataset(folder)
    (folder / "queries.jsonl").unlink()
    with pytest.raises(errors.InvalidDataset, match="there are no queries"):
        read_dataset(folder)
    with pytest.raises(errors.InvalidDataset, match="there is no such folder"):
        read_dataset(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(errors.InvalidDataset, match="there are no documents in it"):
        read_dataset(tmp_path / "bare")


spans_of = st.tuples(st.integers(0, 40), st.integers(1, 15)).map(lambda drawn: Span(drawn[0], drawn[0] + drawn[1]))


@given(st.lists(spans_of, min_size=1, max_size=6), st.lists(spans_of, min_size=1, max_size=3))
def test_relevance_and_characters_are_those_of_sets(chunks: list[Span], gold: list[Span]) -> None:
    sets = [set(range(*chunk)) for chunk in chunks]
    wanted = [set(range(*span)) for span in gold]
    expected = [any(2 * len(c & g) >= len(g) or 2 * len(c & g) >= len(c) for g in wanted if c & g) for c in sets]
    assert is_relevant(np.array(chunks), gold).tolist() == expected
    everything = set().union(*wanted)
    touching = [chunk for chunk, one in zip(chunks, sets, strict=True) if one & everything]
    found = characters({"d": chunks}, {"d": touching}, {"d": gold})
    held = len(set().union(*sets) & everything)
    returned = sum(map(len, sets))
    assert found["char_recall@5"] == pytest.approx(held / len(everything))
    assert found["char_precision@5"] == pytest.approx(held / returned)
    assert found["iou@5"] == pytest.approx(held / (len(everything) + returned - held))
    best = sum(end - start for start, end in touching)
    assert found["precision_omega"] == pytest.approx(held / best if best else 0)


@given(st.lists(st.tuples(st.lists(st.booleans(), max_size=15), st.integers(0, 3)), min_size=1, max_size=5))
def test_ranked_measures_are_the_plain_ones(drawn: list[tuple[list[bool], int]]) -> None:
    flags = [found for found, _ in drawn]
    counts = [sum(found) + missed for found, missed in drawn]
    values = ranked(flags, counts)
    for place, (found, count) in enumerate(zip(flags, counts, strict=True)):
        gains = [1 / np.log2(rank + 2) for rank in range(10)]
        gained = sum(gain for gain, hit in zip(gains, found, strict=False) if hit)
        ideal = sum(gains[:count])
        assert values["ndcg@10"][place] == pytest.approx(gained / ideal if ideal else 0)
        assert values["recall@5"][place] == pytest.approx(sum(found[:5]) / count if count else 0)
        assert values["hit@1"][place] == float(any(found[:1]))
        assert values["hit@5"][place] == float(any(found[:5]))
        assert values["mrr"][place] == pytest.approx(1 / (found.index(True) + 1) if any(found) else 0)
        at = [sum(found[: rank + 1]) / (rank + 1) for rank in range(min(5, len(found))) if found[rank]]
        assert values["context_precision@5"][place] == pytest.approx(np.mean(at) if at else 0)


def test_intervals_are_paired_and_over_documents() -> None:
    generator = np.random.default_rng(1)
    documents = [f"d{number % 20}" for number in range(400)]
    base = generator.random(400)
    same = difference(base, base, documents)
    assert (same.low, same.mean, same.high) == (0, 0, 0)
    better = difference(base + 0.1, base, documents)
    assert (better.low, better.high) == pytest.approx((0.1, 0.1))
    noisy = base + generator.normal(0, 1, 20)[np.arange(400) % 20]  # a document's queries share their luck
    wide, alone = difference(noisy, base, documents), difference(noisy, base, [str(number) for number in range(400)])
    assert wide.low < wide.mean < wide.high
    assert wide.high - wide.low > 2 * (alone.high - alone.low)
    assert wide == difference(noisy, base, documents)


def test_arms_are_what_they_say(embedded: LateChunker, dataset: Dataset) -> None:
    cuttings = make_cuttings(["paragraphs", "semantic"], [])
    arms = make_arms("m", cuttings, ["late", "naive", "blend", "contextual"], [0, 0.5, 1])
    results = {result.arm.label: result for result in compare(embedded, dataset, arms, Store(None))}
    for cutting in cuttings:
        for mode in ("late", "naive", "contextual"):
            found = list(embedded.embed_many(dataset.documents, strategy=cutting.strategy, mode=mode))
            places = [(one.id, chunk.span) for one in found for chunk in one.chunks]
            vectors = np.concatenate([one.vectors for one in found])
            for place, query in enumerate(dataset.queries):
                order = np.argsort(-(vectors @ embedded.embed_query(query.text)), kind="stable")[:5]
                assert results[f"{cutting.name} {mode}"].top[place] == [places[chunk] for chunk in order]
        assert results[f"{cutting.name} blend 0"].top == results[f"{cutting.name} naive"].top
        assert results[f"{cutting.name} blend 1"].top == results[f"{cutting.name} late"].top
    assert results["paragraphs late"].document["hit@1"].mean() >= results["paragraphs late"].corpus["hit@1"].mean()
    assert results["paragraphs late"].chunks == 16


def test_all_arms_share_the_passes_and_what_was_read_is_kept(
    embedded: LateChunker, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    reader = embedded.reader

    class Counting:
        def read_all(self, batches: Iterable[Sequence]) -> Iterator[tuple[Sequence, list]]:
            for batch, results in reader.read_all(batches):
                read.append(len(batch))
                yield batch, results

    monkeypatch.setattr(embedded, "reader", Counting())
    store = Store(tmp_path / "kept")
    cuttings = make_cuttings(["tokens", "recursive", "sentences", "semantic"], [8, 16, 32])
    assert len(cuttings) == 12
    arms = make_arms("m", cuttings, ["late"])
    first = list(compare(embedded, dataset, arms, store))
    assert sum(read) == len(dataset.documents) + len(dataset.queries)
    read.clear()
    again = list(compare(embedded, dataset, arms, store))
    assert sum(read) == len(dataset.queries)
    assert [one.top for one in again] == [one.top for one in first]
    # Half a file is no file; another text is another document.
    kept = sorted((tmp_path / "kept").glob("*.npz"))
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    changed = Dataset("c", (*dataset.documents[:3], Document(city("Cairo") + " Always.", id="cairo")), dataset.queries)
    for data in (dataset, changed):
        read.clear()
        list(compare(embedded, data, arms, store))
        assert sum(read) == 1 + len(dataset.queries)
    other = make_arms("m", make_cuttings(["tokens"], [9]), ["late"])
    read.clear()
    list(compare(embedded, dataset, other, store))
    assert sum(read) == len(dataset.documents) + len(dataset.queries)


def test_the_control_puts_chunks_among_strangers(
    embedded: LateChunker, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Document] = []
    plain = embedded.embed_many

    def noting(documents, **options):
        for document in documents:
            if document.spans is not None:
                given.append(document)
            yield from plain([document], **options)

    monkeypatch.setattr(embedded, "embed_many", noting)
    arms = make_arms("m", make_cuttings(["paragraphs"], []), ["late", comparison_module.CONTROL])
    late, control = compare(embedded, dataset, arms, Store(None))
    owners = {part: name for name in CITIES for part in city(name).split("\n\n")}
    chunks = [[document.text[slice(*span)] for span in document.spans or ()] for document in given]
    assert sorted(part for one in chunks for part in one) == sorted(owners)
    for one in chunks:
        assert all(owners[before] != owners[after] for before, after in pairwise(one))
    assert late.corpus["ndcg@10"].mean() > control.corpus["ndcg@10"].mean()


def test_bm25_finds_words_and_is_fused(embedded: LateChunker, dataset: Dataset) -> None:
    exact = Dataset("x", dataset.documents, (Query("q", "brown CHEESE, zzz", {"oslo": [Span(0, 4)]}),))
    arms = make_arms("m", make_cuttings(["paragraphs"], []), ["naive", "bm25"], fuse=True)
    _, lexical, fused = compare(embedded, exact, arms, Store(None))
    assert fused.arm.label == "paragraphs naive + bm25"
    name, span = lexical.top[0][0]
    assert (name, city("Oslo")[slice(*span)]) == ("oslo", "People there like to eat brown cheese.")
    assert fused.top[0][0] == lexical.top[0][0]
    unknown = Dataset("x", dataset.documents, (Query("q", "…", {"oslo": [Span(0, 4)]}),))
    list(compare(embedded, unknown, arms, Store(None)))


def result(label: str, values: np.ndarray) -> ArmResult:
    (cutting,) = make_cuttings(["sentences"], [])
    mode, _, weight = label.partition(" ")
    (arm,) = make_arms("m", [cutting], [mode], [float(weight)] if weight else [])
    return ArmResult(arm, 10, 20.0, {"ndcg@10": values, "tokens@5": values * 0 + 100}, {}, [[] for _ in values])


def test_a_suggestion_goes_by_the_lower_end_and_says_when_it_is_not_sure() -> None:
    generator = np.random.default_rng(0)
    base = generator.random(200) / 2
    gold = [Query(str(number), "q", {f"d{number % 25}": [Span(0, 1)]}) for number in range(200)]
    dataset = Dataset("d", tuple(Document("x", id=f"d{number}") for number in range(25)), tuple(gold))
    steady, lucky = base + 0.05, base + np.where(np.arange(200) % 25 < 2, 1.0, 0.0)
    arms = [result("naive", base), result("late", lucky), result("blend 0.5", steady)]
    assert lucky.mean() > steady.mean()
    chosen = suggest(arms, dataset)
    assert (chosen.label, chosen.sure) == ("sentences blend 0.5", True)
    assert "sentences late cannot be told from it, and reads less" in chosen.why
    few = suggest(arms, dataset, only=range(9))
    assert not few.sure
    assert "9 queries to 9 documents are too few to say" in few.why
    assert "nothing to choose between" in suggest(arms[:1], dataset).why
    worse = suggest([arms[0], result("late", base - 0.1)], dataset)
    assert (worse.label, worse.sure) == ("sentences naive", False)
    assert worse.why == "no other arm is surely better"


def test_differences_are_to_the_naive_arm_of_the_same_chunks(embedded: LateChunker, dataset: Dataset) -> None:
    arms = make_arms("m", make_cuttings(["tokens"], [8, 16]), ["naive", "late"])
    results = list(compare(embedded, dataset, arms, Store(None)))
    made = {row.arm.label: row for row in rows(results, dataset)}
    assert made["tokens 8 late"].baseline == "tokens 8 naive"
    assert made["tokens 16 late"].baseline == "tokens 16 naive"
    mean = made["tokens 16 late"].corpus["ndcg@10"] - made["tokens 16 naive"].corpus["ndcg@10"]
    assert made["tokens 16 late"].difference["ndcg@10"].mean == pytest.approx(mean)
    fixed = {row.arm.label: row for row in rows(results, dataset, baseline="tokens 8 late")}
    assert {row.baseline for row in fixed.values()} == {"tokens 8 late"}
    with pytest.raises(errors.InvalidParameter, match="baseline must be one of tokens 8 naive"):
        rows(results, dataset, baseline="nothing")


def evaluate(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["evaluate", *arguments])
    if found.exception:
        raise found.exception
    return found.stdout


def test_the_command_prints_tables_json_and_a_page(folder: Path, tmp_path: Path) -> None:
    common = [str(folder), "--strategy", "paragraphs,tokens", "--size", "12,24", "--cache", str(tmp_path / "kept")]
    shown = evaluate(*common, "--mode", "naive,late,blend", "--by", "continent", "--suggest", "--bm25")
    assert "cities: 4 documents, 12 queries" in shown
    assert "continent Africa: 3 queries" in shown
    assert "tokens 12 blend 0.7 + bm25" in shown
    assert shown.count("suggested:") == 3
    assert "too few to say" in shown
    page = tmp_path / "page.html"
    record = json.loads(evaluate(*common, "--json", "--by", "continent", "--html", str(page)))
    assert record["data"] == {"name": "cities", "documents": 4, "queries": 12}
    assert [arm["label"] for arm in record["arms"]] == [
        *("paragraphs 12 naive", "paragraphs 12 late", "paragraphs 12 blend 0.6"),
        *("paragraphs 24 naive", "paragraphs 24 late", "paragraphs 24 blend 0.6"),
        *("tokens 12 naive", "tokens 12 late", "tokens 12 blend 0.6"),
        *("tokens 24 naive", "tokens 24 late", "tokens 24 blend 0.6"),
    ]
    arm = record["arms"][1]
    assert (arm["strategy"], arm["size"], arm["mode"], arm["passes"]) == ("paragraphs", 12, "late", 1)
    low, mean, high = arm["difference"]["ndcg@10"]
    assert low <= mean <= high
    assert {"ndcg@10", "recall@5", "hit@5", "mrr", "iou@5", "precision_omega", "tokens@5"} <= set(arm["corpus"])
    assert set(arm["document"]) == set(arm["corpus"])
    assert set(record["groups"]) == {"Europe", "Africa"}
    html = page.read_text(encoding="utf-8")
    assert html.count("<svg") == 3
    assert "What do they eat in" in html
    assert not re.search(r"(?:src|href)=[\"']https?:", html)


def test_two_models_are_compared_over_the_same_arms(folder: Path, byte_level: LateChunker) -> None:
    other = str(byte_level.planner.folder.transformer)
    record = json.loads(evaluate(str(folder), "--mode", "naive,late", "--against", other, "--no-cache", "--json"))
    assert [arm["model"] for arm in record["arms"]] == ["embedded", "embedded", other, other]
    assert {arm["baseline"] for arm in record["arms"]} == {"embedded: recursive naive"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mode", "early"], "mode must be one of late, naive, blend, contextual, bm25, control, got 'early'"),
        (["--mode", ","], "at least one mode is needed"),
        (["--strategy", "paragraph"], "unknown strategy 'paragraph'"),
        (["--strategy", ","], "at least one strategy is needed"),
        (["--size", "8,x"], "size must be integers of at least 1 with commas between, got 'x'"),
        (["--blend-weight", "2"], "blend_weight must be numbers from 0 to 1 with commas between, got '2'"),
        (["--set", "marker=1"], "none of recursive has an option marker"),
        (["--context-url", "http://x/v1"], "--context-url needs --context-model"),
        (["--context-model", "m"], "--context-model needs --context-url"),
        (
            ["--context-url", "http://x/v1", "--context-model", "m", "--context-prices", "1,2"],
            "three numbers with commas",
        ),
        (["--against", "embedded"], "--against embedded: it is the same model"),
        (["--html", "/nowhere/page.html"], "there is no such place for a file"),
        (["--by", "nothing", "--no-cache"], "a document has no field 'nothing'; known: continent"),
        (["--baseline", "nothing", "--no-cache"], "baseline must be one of recursive naive"),
    ],
)
def test_wrong_options_are_said(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=re.escape(message)):
        evaluate(str(folder), *options)

"""The command line as a user runs it, in processes of its own where exit codes matter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from late_chunking import LateChunker, cli, errors
from late_chunking.cli import app

TEXT = "\ufeffBerlin is the capital of Germany.\r\n\r\nThe city has 3.8 million people. It grew by 40 %. 🦊\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A text file with what translation would change."""
    path = tmp_path / "berlin [1].txt"
    path.write_bytes(TEXT.encode())
    return path


def run(*arguments: str) -> str:
    """Run a command in this process and give its standard output."""
    result = CliRunner().invoke(app, list(arguments))
    if result.exception:
        raise result.exception
    return result.stdout


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the console script in this process and give its exit code."""
    monkeypatch.setattr(sys, "argv", ["late-chunking", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-c", "from late_chunking.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_chunk_prints_spans_that_index_the_file(file: Path) -> None:
    record = json.loads(run("chunk", str(file), "--strategy", "sentences", "--json"))
    assert record["id"] == str(file)
    assert len(record["chunks"]) == 4
    for chunk in record["chunks"]:
        assert chunk["text"] == TEXT[slice(*chunk["span"])]
        assert "embedding" not in chunk
    shown = run("chunk", str(file), "--strategy", "sentences")
    assert "Berlin is the capital of Germany." in shown
    assert "berlin [1].txt: 4 chunks" in shown
    assert "40 %." in shown


def test_chunk_loads_weights_only_to_cut_by_meaning(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*arguments: object) -> LateChunker:
        raise errors.UnsupportedModel("weights were asked for")

    monkeypatch.setattr(cli, "LateChunker", load)
    assert "4 chunks" in run("chunk", str(file), "--strategy", "sentences")
    assert run("chunk", str(file), "--strategy", "semantic", "--set", 'embedder="bag-of-words"')
    with pytest.raises(errors.UnsupportedModel, match="weights were asked for"):
        run("chunk", str(file), "--strategy", "semantic")


def test_any_option_of_a_strategy(file: Path) -> None:
    by_flag = run("chunk", str(file), "--size", "5", "--overlap", "2", "--json")
    by_set = run("chunk", str(file), "--set", "size=5", "--set", "overlap=2", "--json")
    assert by_flag == by_set
    other = run("chunk", str(file), "--set", "size=20", "--set", 'unit="chars"', "--set", 'separators=[" "]', "--json")
    assert all(len(chunk["text"]) <= 20 for chunk in json.loads(other)["chunks"])


def test_embed_writes_parquet_with_the_librarys_vectors(file: Path, embedded: LateChunker) -> None:
    other = file.with_name("empty.txt")
    other.write_text(" ")
    out = file.with_name("v.parquet")
    run("embed", str(file), str(other), "--out", str(out), "--strategy", "sentences", "--device", "cpu")
    rows = pq.read_table(out).to_pylist()
    expected = embedded.embed(TEXT, strategy="sentences")
    assert [(row["start"], row["end"]) for row in rows] == [chunk.span for chunk in expected.chunks]
    assert [row["text"] for row in rows] == [chunk.text for chunk in expected.chunks]
    assert {row["document_id"] for row in rows} == {str(file)}
    np.testing.assert_allclose([row["vector"] for row in rows], expected.vectors, atol=1e-6)
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []


def test_embed_prints_json_lines(file: Path, embedded: LateChunker) -> None:
    lines = run("embed", str(file), str(file), "--json", "--mode", "naive", "--strategy", "sentences").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["index"] for record in records] == [0, 1]
    expected = embedded.embed(TEXT, strategy="sentences", mode="naive")
    vectors = [chunk["embedding"] for chunk in records[1]["chunks"]]
    np.testing.assert_allclose(vectors, expected.vectors, atol=1e-6)
    assert not file.with_name("vectors.parquet").exists()


def test_a_failure_half_way_leaves_no_file(file: Path) -> None:
    bad = file.with_name("bad.txt")
    bad.write_bytes(b"abc\xff")
    out = file.with_name("v.parquet")
    with pytest.raises(errors.InvalidInput, match="not UTF-8: byte 0xff at offset 3"):
        run("embed", str(file), str(bad), "--out", str(out))
    assert not out.exists()
    assert not list(file.parent.glob(".*partial"))


def test_compare_shows_both_similarities(file: Path, embedded: LateChunker) -> None:
    query = "population of Berlin"
    record = json.loads(run("compare", str(file), "--query", query, "--strategy", "sentences", "--json"))
    vector = embedded.embed_query(query)
    for mode in ("late", "naive"):
        expected = embedded.embed(TEXT, strategy="sentences", mode=mode).vectors @ vector
        np.testing.assert_allclose([chunk[mode] for chunk in record["chunks"]], expected, atol=1e-6)
    shown = run("compare", str(file), "--query", query, "--strategy", "sentences")
    assert "late" in shown
    assert "naive" in shown


def test_prompts_and_window_are_the_callers() -> None:
    arguments = ["--query-prompt", "q: ", "--document-prompt", "d: ", "--window", "128"]
    found = json.loads(run("info", "--json", *arguments))
    assert (found["query_prompt"], found["document_prompt"], found["window"]) == ("q: ", "d: ", 128)


def test_info_says_what_is_in_force() -> None:
    found = json.loads(run("info", "--json"))
    assert found["window"] == 256
    assert "no prompt is in force" in run("info")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["chunk", "no-such-file.txt"], 2, "no-such-file.txt: No such file or directory"),
        (["chunk", "FILE", "--strategy", "nope"], 2, "unknown strategy 'nope'"),
        (["chunk", "FILE", "--size", "0"], 2, "size must be an integer of at least 1, got 0"),
        (["chunk", "FILE", "--size", "4", "--overlap", "4"], 2, "overlap 4 with size 4"),
        (["chunk", "FILE", "--size", "x"], 2, "Invalid value for '--size'"),
        (["chunk", "FILE", "--set", "size"], 2, "NAME=JSON is needed"),
        (["chunk", "FILE", "--set", "unit=chars"], 2, "a string needs quotes of its own"),
        (["chunk", "FILE", "--model", "/no/such"], 2, "'/no/such' is neither"),
        (["chunk", "FOLDER"], 2, "Is a directory"),
        (["embed", "FILE", "--model", "FOLDER"], 2, "is it a model folder?"),
        (["embed", "FILE", "--out", "x.csv"], 2, "must end in .parquet"),
        (["embed", "FILE", "--out", "/no/such/x.parquet"], 2, "there is no folder /no/such"),
        (["embed", "FILE", "--out", "FOLDER.parquet"], 2, "it is a folder"),
        (["chunk", "FILE", "--set", "separators=" + "[" * 50_000], 2, "--set separators="),
        (["chunk", "FILE", "--size", "9" * 30, "--overlap", "9" * 31], 2, "overlap must be smaller than size"),
        (["info", "--device", "meta"], 2, "device 'meta' cannot be used here"),
        (["info", "--model", "~nosuchuser/x"], 2, "is not the name of a folder"),
        (["embed", "FILE", "--mode", "early"], 2, "mode must be one of"),
        (["chunk", "FILE", "--size", "4", "--set", "size=5"], 2, "size is given twice: --size 4 and --set size=5"),
        (["compare", "FILE", "--query", " "], 2, "the query is empty"),
        (["compare", "FILE"], 2, "Missing option '--query'"),
        (["serve", "--port", "99999"], 2, "port: input should be less than or equal to 65535, got 99999"),
        (["serve", "--host", "192.0.2.1"], 1, "cannot listen on 192.0.2.1 port 8080"),
        (["chunk"], 2, "Missing argument"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    file: Path,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = file.parent / "folder.parquet"
    folder.mkdir()
    names = {"FILE": str(file), "FOLDER": str(file.parent), "FOLDER.parquet": str(folder)}
    assert main(monkeypatch, *(names.get(argument, argument) for argument in arguments)) == code
    printed = capsys.readouterr()
    assert message in " ".join(printed.err.split())
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("late-chunking 0")
    for help_arguments in ([], ["--help"], ["embed", "-h"]):
        assert main(monkeypatch, *help_arguments) == 0
        assert "Usage" in capsys.readouterr().out


def test_compare_can_show_the_best_alone(file: Path) -> None:
    shown = run("compare", str(file), "--query", "population of Berlin", "--strategy", "sentences", "--top", "1")
    assert "best by late: Berlin is the capital of Germany." in shown.replace("\ufeff", "")
    assert "🦊" not in shown


def test_debug_shows_the_traceback_and_the_environment_names_the_model(file: Path) -> None:
    result = process("--debug", "chunk", str(file), MODEL_ID="/no/such")
    assert "Traceback" in result.stderr
    assert "/no/such" in result.stderr
    assert result.returncode == 2


def test_a_file_whose_name_is_not_utf8(file: Path) -> None:
    odd = os.fsencode(file.parent) + b"/n\xffame.txt"
    Path(os.fsdecode(odd)).write_text("The ferry leaves.")
    result = process("chunk", os.fsdecode(odd), "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["id"].endswith("n\\xffame.txt")


def test_ended_politely_nothing_half_written_is_left(file: Path) -> None:
    out = file.with_name("v.parquet")
    code = "import sys, os; from late_chunking.cli import main; import late_chunking.parquet as p\n"
    code += "inner = p.chunk_batch\np.chunk_batch = lambda *a: (os.kill(os.getpid(), 15), inner(*a))[1]\nmain()"
    result = subprocess.run([sys.executable, "-c", code, "embed", str(file), "--out", str(out)], check=False)
    assert result.returncode == 128 + 15
    assert not out.exists()
    assert not list(file.parent.glob(".*partial"))


def test_a_full_disk_is_one_line(file: Path) -> None:
    command = [sys.executable, "-c", "from late_chunking.cli import main; main()", "chunk", str(file), "--json"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


def test_a_quiet_run_writes_nothing_but_json(file: Path) -> None:
    result = process("embed", str(file), "--json", "--device", "cpu")
    assert result.returncode == 0
    assert result.stderr == ""
    assert json.loads(result.stdout)["windows"] == 1

"""Documents spread over processes, against one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from late_chunking import Document, FailedDocument, LateChunker, errors
from late_chunking.sharding import embed_sharded, share

ROOT = Path(__file__).parent.parent
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 5))
def test_shares_hold_every_document_once_and_are_balanced(lengths: list[int], processes: int) -> None:
    part = [(7 + place, Document("x" * length, id="d")) for place, length in enumerate(lengths)]
    part.append((99, FailedDocument("", 99, errors.InvalidDocument("no"))))
    shares = share(part, processes)
    assert len(shares) == processes
    assert sorted(index for own in shares for index, _ in own) == [index for index, _ in part[:-1]]
    assert all([index for index, _ in own] == sorted(index for index, _ in own) for own in shares)
    loads = [sum(max(len(document.text), 1) for _, document in own) for own in shares]
    assert max(loads) - min(loads) <= max([*lengths, 1])


def test_one_process_embeds_as_ever(embedded: LateChunker) -> None:
    texts = ["One. Two.", "Three."]
    found = list(embed_sharded(embedded, texts, strategy="sentences"))
    for one, other in zip(found, embedded.embed_many(texts, strategy="sentences"), strict=True):
        np.testing.assert_array_equal(one.vectors, other.vectors)


SCRIPT = """
import json, sys
from late_chunking import Document, FailedDocument, LateChunker, sharding
from late_chunking.encoding.device import launched, leave_launch
sharding._DOCUMENTS = 5  # so that there are several rounds
chunker = LateChunker("embedded")
state = launched()
ran = []
inner = chunker.run
chunker.run = lambda plans: inner(ran.append(plan.index) or plan for plan in plans)
def documents():
    for place in range(23):
        yield Document(f"Document {place}. " + "It goes on. " * (place * 7 % 40), id=f"d{place}") if place != 12 else 12
    if sys.argv[1] == "iterable":
        raise OSError("the disk is gone")
found = []
try:
    for one in sharding.embed_sharded(chunker, documents(), strategy="semantic", on_error=sys.argv[2]):
        if isinstance(one, FailedDocument):
            found.append([one.index, str(one.error)])
        else:
            found.append([one.index, one.document.id, [c.text for c in one.chunks], one.vectors.tolist()])
except Exception as error:
    found.append(repr(error))
with open(f"{sys.argv[3]}/{state.process_index}.json", "w") as said:
    json.dump([state.num_processes, ran, found], said)
leave_launch()
"""


def launched(tmp_path: Path, *arguments: str) -> dict[int, list]:
    """What each of two processes says, in a file of its own: in one pipe long lines would mix."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*LAUNCH, str(path), *arguments, str(tmp_path)], env=environment, capture_output=True, timeout=200, check=True
    )
    said = {}
    for process in range(2):
        total, *said[process] = json.loads((tmp_path / f"{process}.json").read_text())
        assert total == 2
    return said


@pytest.mark.slow
def test_two_processes_give_everything_once_and_in_order(tmp_path: Path, embedded: LateChunker) -> None:
    said = launched(tmp_path, "", "yield")
    (first, found), (second, nothing) = said[0], said[1]
    assert nothing == []
    assert sorted([*first, *second]) == [place for place in range(23) if place != 12]
    assert min(len(first), len(second)) > 5
    assert [each[0] for each in found] == list(range(23))
    assert found[12] == [12, "document 12: text must be a string, got int"]
    for index, name, texts, vectors in (each for each in found if each[0] != 12):
        expected = embedded.embed(
            Document(f"Document {index}. " + "It goes on. " * (index * 7 % 40), id=name), strategy="semantic"
        )
        assert name == f"d{index}"
        assert texts == [chunk.text for chunk in expected.chunks]
        np.testing.assert_allclose(np.array(vectors), expected.vectors, atol=1e-6)


@pytest.mark.slow
def test_every_process_hears_of_an_error(tmp_path: Path) -> None:
    said = launched(tmp_path, "", "raise")
    refused = "InvalidDocument('document 12: text must be a string, got int')"
    assert [found[-1] for _, found in said.values()] == [refused, refused]
    assert len(said[0][1]) == 13
    said = launched(tmp_path, "iterable", "yield")
    assert [found[-1] for _, found in said.values()] == ["OSError('the disk is gone')"] * 2
    assert len(said[0][1]) == 24


@pytest.mark.slow
def test_the_command_line_is_launched_as_one(tmp_path: Path) -> None:
    files = []
    for name in ("b", "a", "c"):
        path = tmp_path / f"{name}.txt"
        path.write_text(f"This is the text {name} of three. It is short.")
        files.append(str(path))
    command = ["-m", "late_chunking", "embed", *files, "--strategy", "sentences", "--out", str(tmp_path / "v.parquet")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*LAUNCH, *command], env=environment, check=True, timeout=200, capture_output=True)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(tmp_path / "v.parquet")
    assert table["document_id"].to_pylist() == [name for name in files for _ in range(2)]
    refused = subprocess.run(
        [*LAUNCH, *command[:3], "-"],
        env=environment,
        cwd=tmp_path,
        timeout=200,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode
    assert "cannot be read by several processes" in refused.stderr

"""Requests made up from the OpenAPI document by schemathesis: none may end in a 500."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.processes import Process


@pytest.mark.slow
def test_no_request_ends_in_a_server_error(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "schemathesis", "run", "--checks", "not_a_server_error"]
    with Process("--max-document-tokens", "2000") as server:
        options = ["--max-examples", "100", "--seed", "1", "--phases", "examples,coverage,fuzzing", "--no-color"]
        result = subprocess.run(
            [*command, *options, f"{server.url}/openapi.json"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert result.returncode == 0, result.stdout[-4000:]
        assert server.metric("lc_tokens_total") > 0
        assert server.ready()

"""Bodies that are packed, slow, deep, or not what they say."""

import gzip
import json
import zlib

import pytest
import zstandard

from server.bodies import unpacked
from server.errors import MalformedRequest, PayloadTooLarge, UnknownEncoding

BODY = json.dumps({"documents": [{"text": "Berlin is a city. " * 20}]}).encode()
PACKED = {
    "gzip": gzip.compress(BODY),
    "zstd": zstandard.compress(BODY),
    "identity": BODY,
    "GZIP": gzip.compress(BODY[:50]) + gzip.compress(BODY[50:]),
}


def post(client, body, **headers):
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return client.post("/v1/chunks", content=body, headers=given)


@pytest.mark.parametrize("encoding", PACKED)
def test_packed_bodies_are_read(client, encoding):
    answer = post(client, PACKED[encoding], Content_Encoding=encoding)
    assert answer.status_code == 200
    assert answer.json()["data"] == post(client, BODY).json()["data"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_bombs_are_refused_before_they_go_off(client, encoding):
    pack = {"gzip": gzip.compress, "zstd": zstandard.compress}[encoding]
    bomb = pack(b"0" * 50_000_000)
    assert len(bomb) < 200_000
    answer = post(client, bomb, Content_Encoding=encoding)
    assert (answer.status_code, answer.json()["error_type"]) == (413, "payload_too_large")
    assert "unpacked" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "encoding", "error"),
    [
        (b"no gzip", "gzip", MalformedRequest),
        (gzip.compress(BODY)[:-9], "gzip", MalformedRequest),
        (b"no zstd", "zstd", MalformedRequest),
        (BODY, "br", UnknownEncoding),
        (BODY, "gzip, gzip", UnknownEncoding),
        (gzip.compress(bytes(2_000)), "gzip", PayloadTooLarge),
        (gzip.compress(b"") * 3 + gzip.compress(bytes(2_000)), "gzip", PayloadTooLarge),
        (gzip.compress(b"") * 100_000, "gzip", MalformedRequest),
    ],
)
def test_what_is_not_packed_so_is_refused(body, encoding, error):
    with pytest.raises(error):
        unpacked(body, encoding, 1_000)


def test_the_statuses_of_such_bodies(client):
    assert post(client, b"no gzip", Content_Encoding="gzip").status_code == 400
    answer = post(client, BODY, Content_Encoding="br")
    assert (answer.status_code, answer.json()["error_type"]) == (415, "unknown_encoding")
    assert "gzip, zstd" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe{}",
        b'{"documents": [{"text": "\xff"}]}',
        b'{"documents": [{"text": "\\ud800"}]}',
        b"[" * 100_000,
        b'{"documents": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"documents": [{"text": "a", "metadata": ' + b'{"a": ' * 2_000 + b"1" + b"}" * 2_000 + b"}]}",
        b"NaN",
        zlib.compress(BODY),
    ],
    ids=["empty", "utf16", "not utf8", "surrogate", "deep", "deep list", "deep metadata", "nan", "unsaid packing"],
)
def test_broken_json_is_malformed(client, body):
    answer = post(client, body)
    assert (answer.status_code, answer.json()["error_type"]) == (400, "malformed")
    assert len(answer.json()["error"]) < 400


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_only_post_has_a_body_that_is_read(client, method):
    answer = client.request(method, "/healthz", content=bytes(5_000_000))
    assert answer.status_code == (405 if method == "PUT" else 200) or method == "HEAD"

"""Servers that confirm an object before they have it, or without ever having it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from heron.errors import PackageError
from heron_testing.contracts.driver import in_time
from heron_uploader_s3 import S3Uploader

Serve = Callable[[int], dict[str, object]]

LIST = """\
<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}
<Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>"""
ENTRY = """\
<Contents><Key>{key}</Key><Size>{size}</Size><ETag>"{tag}"</ETag>
<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"""
STALL_S = 30.0  # the contract's longest time without progress


class LateHandler(BaseHTTPRequestHandler):
    """Confirms every object, and hides it from the next `hidden` lists."""

    hidden = 0
    stored: tuple[str, bytes] | None = None

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).stored = urlsplit(self.path).path.removeprefix("/b/"), content
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)["prefix"][0]
        entry = ""
        if self.stored and self.hidden > 0:
            type(self).hidden -= 1
        elif self.stored and self.stored[0] == asked:
            tag = hashlib.md5(self.stored[1], usedforsecurity=False).hexdigest()
            entry = ENTRY.format(key=asked, size=len(self.stored[1]), tag=tag)
        body = LIST.format(entry).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that hides objects; returns the options of an uploader for it."""
    servers: list[HTTPServer] = []

    def start(hidden: int) -> dict[str, object]:
        server = HTTPServer(("127.0.0.1", 0), type("Handler", (LateHandler,), {"hidden": hidden}))
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_port}"
        keys = {"access_key_id": "a", "secret_access_key": "s"}
        return {"bucket": "b", "endpoint_url": url, "addressing": "path", "region": "us-east-1", **keys}

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "package"
    path.write_bytes(b"package" * 100)
    return path


def test_an_upload_waits_until_the_server_lists_the_object(serve: Serve, package: Path) -> None:
    """While a server joins the parts of a large package, it may confirm a repeated request too early."""
    assert S3Uploader.open(serve(3)).upload(package, "words").startswith("s3://b/words-")


@pytest.mark.parametrize("appears_s", [1.0, pytest.param(None, marks=pytest.mark.soak)])
def test_an_upload_fails_when_the_server_never_lists_the_object(
    serve: Serve, package: Path, appears_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this check containers would look for the package for ever."""
    if appears_s is not None:
        monkeypatch.setattr("heron_uploader_s3.uploader._APPEARS_S", appears_s)
    uploader = S3Uploader.open(serve(10**9))
    with in_time(STALL_S), pytest.raises(PackageError, match=r"confirmed words-\w+\.tar\.gz but does not list it"):
        uploader.upload(package, "words")

"""The cases of the suites for servers, run on a small driver that uses a server.

The drivers of this test environment keep files, so this shows that a driver can pass the cases for servers.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import msgspec
import pytest

from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_testing.contracts.driver import needed, requires
from heron_testing.contracts.fault_cases.uploader_faults import UploaderFaultCases
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay

_TIMEOUT_S = 2.0  # a server that waits for its turn on a busy machine is not a silent one


class Store(ThreadingHTTPServer):
    """Keeps uploaded files in memory."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    """Serves PUT, GET and DELETE of whole files."""

    server: Store

    def do_PUT(self) -> None:
        """Keep the file if it is complete."""
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) == length:
            self.server.kept[self.path] = content
            self._answer(204, b"")

    def do_GET(self) -> None:
        """Return the file."""
        found = self.server.kept.get(self.path)
        self._answer(200 if found is not None else 404, found or b"")

    def do_DELETE(self) -> None:
        """Remove the file."""
        self.server.kept.pop(self.path, None)
        self._answer(204, b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Write nothing to stderr."""

    def _answer(self, code: int, content: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)


class HttpOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of the store."""

    address: str


class HttpUploader(Uploader):
    """Keeps packages on a `Store`."""

    spi_version = 1
    options_type = HttpOptions
    capabilities = frozenset({"server", "shared"})

    def __init__(self, address: str) -> None:
        self._address = address

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Return an uploader for the address."""
        return cls(str(options["address"]))

    def check(self, timeout_s: float) -> str:
        """Put an empty file."""
        self._ask("PUT", "/probe", b"", timeout_s)
        return self._address

    def upload(self, package: Path, name: str) -> str:
        """Put the package."""
        content = package.read_bytes()
        path = f"/{name}-{hashlib.sha256(content).hexdigest()}"
        self._ask("PUT", path, content)
        return f"http://{self._address}{path}"

    def undo(self, uri: str) -> None:
        """Delete the package."""
        self._ask("DELETE", "/" + uri.rpartition("/")[2])

    def download(self, uri: str, target: Path) -> None:
        """Get the package, check its digest, and write it."""
        content = self._ask("GET", "/" + uri.rpartition("/")[2])
        if hashlib.sha256(content).hexdigest() not in uri:
            msg = "another SHA-256"
            raise PackageError(msg)
        target.write_bytes(content)

    def _ask(self, method: str, path: str, content: bytes | None = None, timeout_s: float = _TIMEOUT_S) -> bytes:
        request = urllib.request.Request(f"http://{self._address}{path}", content, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  # the test's own server
                found: bytes = answer.read()
                return found
        except (OSError, http.client.HTTPException) as error:
            msg = f"package server {self._address}: {error}"
            raise PackageError(msg) from error


class TestServerCases(UploaderFaultCases):
    """The cases of the family that need a server. Cases of discovery are left out."""

    name = "http"
    driver_class = HttpUploader
    test_is_found_by_its_name = None  # type: ignore[assignment]  # it is installed nowhere
    test_refuses_an_unknown_option_and_names_it = None  # type: ignore[assignment]  # options are not its subject
    test_names_the_nearest_option = None  # type: ignore[assignment]  # nor here
    test_an_upload_killed_in_the_middle_leaves_nothing_that_looks_whole = None  # type: ignore[assignment]  # by module
    test_opens_in_a_process_that_does_no_discovery = None  # type: ignore[assignment]  # likewise

    @pytest.fixture
    def relay(self) -> Iterator[Relay]:
        """The relay between the driver and its server."""
        with Store() as store:
            serving = threading.Thread(target=store.serve_forever, args=(0.01,))
            serving.start()
            relay = Relay(("127.0.0.1", store.server_port))
            yield relay
            relay.close()
            store.shutdown()
            serving.join()

    @pytest.fixture
    def options(self, relay: Relay) -> dict[str, object]:
        """The address of the relay."""
        host, port = relay.address
        return {"address": f"{host}:{port}"}

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        """The faults of a relay."""
        return relay_faults(relay)

    @pytest.fixture
    def uploader(self, options: dict[str, object]) -> HttpUploader:
        """The driver under test."""
        return HttpUploader.open(options)

    @pytest.fixture
    def package(self, tmp_path: Path) -> Path:
        """A package."""
        (tmp_path / "package").write_bytes(b"package" * 100)
        return tmp_path / "package"

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        """The path for downloads."""
        (tmp_path / "container").mkdir()
        return tmp_path / "container" / "package"

    def test_a_lost_answer_is_a_change_that_was_made(self, uploader: HttpUploader, package: Path, relay: Relay) -> None:
        """Otherwise the case of lost answers shows nothing: the server must have kept the file."""
        with needed(uploader, relay_faults(relay), "answers_lost")(), pytest.raises(PackageError):
            uploader.upload(package, "words")
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        assert uploader._ask("GET", f"/words-{digest}") == package.read_bytes()


def test_a_flag_asks_for_its_faults() -> None:
    """A flag without its fault fails the suite; without the flag the case is skipped with a reason."""
    driver = HttpUploader("a:1")
    with pytest.raises(pytest.fail.Exception, match=r"HttpUploader declares 'server'.*must offer 'silent'"):
        needed(driver, Faults(), "silent")
    with pytest.raises(pytest.skip.Exception, match="does not declare the capability 'files'"):
        needed(driver, Faults(), "full")
    with pytest.raises(pytest.skip.Exception, match="does not declare the capability 'files' or 'events'"):
        requires(driver, "files", "events")
    requires(driver, "files", "server")

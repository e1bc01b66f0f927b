"""The HTTP uploader: the contract on a real nginx, authentication, refusals, lists."""

from __future__ import annotations

import json
import os
import resource
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from heron.errors import ConfigError, PackageError
from heron_testing.contracts.parts.uploader_listing import MOST_BYTES
from heron_testing.contracts.parts.uploader_weight import peak_bytes
from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.faketime import shifted_clock
from heron_testing_servers.nginx import NginxServer
from heron_uploader_http import HttpUploader

MIB = 1024 * 1024


@pytest.fixture
def folder(nginx: NginxServer) -> Path:
    """A folder of the server for each test."""
    path = nginx.data / "packages" / secrets.token_hex(8)
    path.mkdir()
    return path


@pytest.fixture
def relay(nginx: NginxServer) -> Iterator[Relay]:
    """Connects the driver to the server, and can cut the connections."""
    relay = Relay(nginx.address)
    yield relay
    relay.close()


@pytest.fixture
def options(relay: Relay, folder: Path) -> dict[str, object]:
    host, port = relay.address
    return {
        "url": f"http://{host}:{port}/packages/{folder.name}/",
        "username": NginxServer.user,
        "password": NginxServer.password,
    }


class TestContract(UploaderContract):
    name = "http"
    driver_class = HttpUploader

    @pytest.fixture(autouse=True)
    def storage(self, folder: Path) -> None:
        self.folder = folder

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def damage(self, uri: str) -> None:
        path = self.folder / uri.rpartition("/")[2]
        path.write_bytes(b"X" + path.read_bytes()[1:])


@pytest.fixture
def uploader(options: dict[str, object]) -> HttpUploader:
    return HttpUploader.open(options)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "package"
    path.write_bytes(b"0123456789abcdef" * (11 * MIB // 16))
    return path


def test_name_is_readable_and_content_addressed(uploader: HttpUploader, folder: Path, package: Path) -> None:
    """The name shows people which topology a package belongs to."""
    uri = uploader.upload(package, "words")
    (file,) = folder.iterdir()
    assert uri.endswith(f"/{file.name}")
    assert file.name.startswith("words-")
    assert len(file.name) == len("words-") + 64 + len(".tar.gz")


def test_a_download_continues_after_a_broken_connection(
    uploader: HttpUploader, package: Path, relay: Relay, tmp_path: Path
) -> None:
    """If each attempt started at the beginning, a large package would never arrive over a bad line."""
    uri = uploader.upload(package, "words")
    cuts = [4 * MIB, 8 * MIB]

    def cut(moved: int, _: int) -> None:
        if cuts and moved > cuts[0]:
            del cuts[0]
            relay.cut()

    uploader.follow(cut)
    uploader.download(uri, tmp_path / "target")
    assert cuts == []
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def refusal(options: dict[str, object], package: Path) -> str:
    with pytest.raises(PackageError) as caught:
        HttpUploader.open(options).upload(package, "words")
    return str(caught.value)


def test_a_wrong_password_is_named(options: dict[str, object], package: Path) -> None:
    """The message names the option, and does not show its value."""
    message = refusal({**options, "password": "wrong-secret"}, package)
    assert "401" in message
    assert "uploader.password" in message
    assert "wrong-secret" not in message


def test_netrc_is_used_when_the_profile_has_no_password(
    options: dict[str, object], package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """curl and git read the same file, so users may have it already."""
    monkeypatch.setenv("HOME", str(tmp_path))
    bare = {"url": options["url"]}
    assert "~/.netrc" in refusal(bare, package)
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine 127.0.0.1 login {NginxServer.user} password {NginxServer.password}\n")
    netrc.chmod(0o600)
    HttpUploader.open(bare).upload(package, "words")
    netrc.write_text("machine")
    with pytest.raises(ConfigError, match="netrc"):
        HttpUploader.open(bare)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("packages/no-such-folder", "the folder does not exist; create it"),
        ("readonly", "403.*allow this user"),
        ("static", "405.*allow this method"),
    ],
)
def test_the_error_of_an_unusable_folder_names_the_remedy(
    nginx: NginxServer, options: dict[str, object], package: Path, path: str, message: str
) -> None:
    """A missing folder, a missing permission and a server that stores nothing have different remedies."""
    host, port = nginx.address
    with pytest.raises(PackageError, match=message):
        HttpUploader.open({**options, "url": f"http://{host}:{port}/{path}"}).upload(package, "words")


def test_a_package_above_the_servers_limit_is_refused_and_leaves_nothing(
    tmp_path: Path, package: Path, nginx: NginxServer
) -> None:
    """The message has the remedy for a full quota."""
    del nginx  # it only shows that nginx is installed
    (tmp_path / "limited").mkdir()
    limited = NginxServer(tmp_path / "limited", limit_bytes=MIB)
    limited.start()
    try:
        message = refusal({"url": limited.url, "username": limited.user, "password": limited.password}, package)
    finally:
        limited.kill()
    assert "413" in message
    assert "heron packages prune" in message
    assert list((limited.data / "packages").iterdir()) == []


def test_an_upload_to_a_server_that_never_answers_fails(options: dict[str, object], package: Path) -> None:
    """The server accepts connections and sends nothing; the command must still end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/packages"
        message = refusal({**options, "url": url}, package)
    assert "does not answer" in message
    assert url in message


class ForgetfulHandler(BaseHTTPRequestHandler):
    """Confirms every PUT, and stores nothing."""

    def do_PUT(self) -> None:
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, MIB)))
        self.answer(201)

    def do_HEAD(self) -> None:
        self.answer(404)

    def do_GET(self) -> None:
        self.answer(404)

    def answer(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_an_upload_fails_when_the_server_confirms_and_stores_nothing(package: Path) -> None:
    """A cache in front, or a page that answers every request. Containers would never find the package."""
    server = HTTPServer(("127.0.0.1", 0), ForgetfulHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        message = refusal({"url": f"http://127.0.0.1:{server.server_port}/packages"}, package)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert "confirmed the package but does not have it" in message
    assert "uploader.url" in message


def test_a_server_that_cannot_write_is_named_and_keeps_nothing(
    uploader: HttpUploader, nginx: NginxServer, folder: Path, package: Path
) -> None:
    """A limit on the size of the server's files replaces a full disk."""
    before = resource.prlimit(nginx.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(nginx.pid, resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        with pytest.raises(PackageError, match=r"words-\w+\.tar\.gz: PUT is refused: 500"):
            uploader.upload(package, "words")
    finally:
        resource.prlimit(nginx.pid, resource.RLIMIT_FSIZE, before)
    assert list(folder.iterdir()) == []
    uploader.upload(package, "words")


def test_ages_do_not_depend_on_the_clock_of_this_machine(options: dict[str, object], package: Path) -> None:
    """`heron packages prune` removes old packages. Both times of an age come from the server's clock."""
    HttpUploader.open(options).upload(package, "words")
    code = (
        "import json, sys; from heron_uploader_http import HttpUploader;"
        "print(*(each.age_s < 600 for each in HttpUploader.open(json.loads(sys.argv[1])).packages()))"
    )
    environment = {**os.environ, **shifted_clock("+1h")}
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps(options)], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "True\n", ran.stderr


def test_half_a_gigabyte_needs_little_memory(options: dict[str, object], tmp_path: Path) -> None:
    """Packages can contain models and libraries, and the submitting machine can be small."""
    assert peak_bytes(HttpUploader, options, 500 * MIB, tmp_path) < MOST_BYTES


def test_a_server_without_webdav_cannot_list(nginx: NginxServer, options: dict[str, object]) -> None:
    """A server that accepts PUT does not always support PROPFIND."""
    host, port = nginx.address
    with pytest.raises(PackageError, match="cannot list a folder"):
        HttpUploader.open({**options, "url": f"http://{host}:{port}/static"}).packages()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "packages"}, "uploader.url"),
        ({"url": "ftp://host/a"}, "uploader.url"),
        ({"url": "http://me:word@host/a"}, "use username and password"),
        ({"url": "http://host/a?b=c"}, "query"),
        ({"password": ""}, "belong together"),
        ({"token": "t"}, "give one"),
        ({"ca_file": "/no/such/file"}, "uploader.ca_file"),
    ],
)
def test_invalid_options_are_refused(change: dict[str, object], message: str) -> None:
    """The error names the key, before a connection is made."""
    given = {"url": "http://host/packages", "username": "u", "password": "p", **change}
    with pytest.raises(ConfigError, match=message):
        HttpUploader.open(given)

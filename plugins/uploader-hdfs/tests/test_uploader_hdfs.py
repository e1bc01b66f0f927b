"""The HDFS uploader: continued uploads, names, rights, quotas and memory."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from heron.errors import ConfigError, PackageError
from heron.spi.uploader import PackageEntry
from heron_hdfs_kit.owner import home
from heron_hdfs_kit.web_hdfs import Entry, WebHdfs
from heron_testing.contracts.driver import in_time
from heron_testing.contracts.parts.second_process import second_process
from heron_testing.contracts.parts.uploader_listing import MOST_BYTES
from heron_testing.contracts.parts.uploader_weight import peak_bytes
from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.faketime import shifted_clock
from heron_testing_servers.hdfs import HdfsServer
from heron_uploader_hdfs.driver import HdfsUploader
from heron_uploader_hdfs.parts import is_abandoned

Opener = Callable[..., HdfsUploader]
Stored = Callable[[], dict[str, Entry]]

LARGE_BYTES = 500 * 1024 * 1024
HOUR_MS = 3_600_000
STALL_S = 30.0  # the contract's longest time without progress


@pytest.fixture
def uploader(opened: Opener) -> HdfsUploader:
    return opened()


def digest_of(package: Path) -> str:
    return hashlib.sha256(package.read_bytes()).hexdigest()


# -- uploads, downloads and lists


def test_the_uri_contains_the_path_and_the_digest(
    uploader: HdfsUploader, package: Path, options: dict[str, object], stored: Stored
) -> None:
    """Other versions download by the same URI, so its form is fixed. The folder holds no other file."""
    file = f"words-{digest_of(package)}.tar.gz"
    assert uploader.upload(package, "words") == f"hdfs://{options['root']}/{file}"
    assert set(stored()) == {file}


def test_other_users_can_read_nothing(uploader: HdfsUploader, opened: Opener, package: Path, tmp_path: Path) -> None:
    """Packages contain code, and may contain secrets."""
    uri = uploader.upload(package, "words")
    with pytest.raises(PackageError, match="permission denied; grant it to user 'mallory'"):
        opened(user="mallory").download(uri, tmp_path / "target")


def test_a_stored_package_is_not_sent_again(uploader: HdfsUploader, package: Path, stored: Stored) -> None:
    """Sending it costs time, and a container may be reading the stored file."""
    uploader.upload(package, "words")
    before = stored()
    uploader.upload(package, "words")
    assert stored() == before


def test_progress_grows_to_the_size_of_the_package(uploader: HdfsUploader, package: Path, tmp_path: Path) -> None:
    """A command shows the progress as a bar."""
    reports: list[tuple[int, int]] = []
    uploader.follow(lambda moved, total: reports.append((moved, total)))
    uri = uploader.upload(package, "words")
    size = package.stat().st_size
    assert reports == sorted(reports)
    assert len(reports) >= 4
    assert reports[-1] == (size, size)
    reports.clear()
    uploader.download(uri, tmp_path / "target")
    assert reports == sorted(reports)
    assert reports[-1] == (size, size)


def test_packages_are_listed_and_can_be_removed(
    uploader: HdfsUploader, package: Path, options: dict[str, object], web: WebHdfs
) -> None:
    """The list includes the parts of a killed upload of another machine, and no files of other programs."""
    uri = uploader.upload(package, "words")
    size = package.stat().st_size
    parts = f".words-{digest_of(package)}.tar.gz.parts-00000000-1-{'0' * 16}"
    for other in (parts, "_SUCCESS"):
        web.make_folder(f"{options['root']}/{other}")
    web.write(f"{options['root']}/{parts}/{0:016d}", [b"x" * 10])
    found = {each.uri: each for each in uploader.packages()}
    rest = f"hdfs://{options['root']}/{parts}"
    assert found == {
        uri: PackageEntry(uri, "words", size, found[uri].age_s, whole=True),
        rest: PackageEntry(rest, "words", 10, found[rest].age_s, whole=False),
    }
    assert all(0 <= each.age_s < 60 for each in found.values())
    for each in found:
        uploader.undo(each)
    assert uploader.packages() == ()


def test_ages_are_by_the_clock_of_hdfs(
    uploader: HdfsUploader, hdfs: HdfsServer, options: dict[str, object], web: WebHdfs, package: Path
) -> None:
    """`heron packages prune` compares ages. A wrong clock of this machine must not change them."""
    path = uploader.upload(package, "words").removeprefix("hdfs://")
    found = web.entry(path)
    assert found is not None
    hdfs.ask("PUT", path, "SETTIMES", modificationtime=found.modified_ms - 10 * 24 * HOUR_MS)
    code = (
        "import json, sys; from heron_uploader_hdfs.driver import HdfsUploader\n"
        "print(*(round(each.age_s / 86400) for each in HdfsUploader.open(json.loads(sys.argv[1])).packages()))"
    )
    for by in ("+1h", "-1h"):
        command = [sys.executable, "-c", code, json.dumps(options)]
        assert subprocess.check_output(command, env={**os.environ, **shifted_clock(by)}, text=True) == "10\n"


def test_an_interrupted_upload_cannot_be_downloaded(
    uploader: HdfsUploader, options: dict[str, object], tmp_path: Path
) -> None:
    """An incomplete package must never run."""
    uri = f"hdfs://{options['root']}/.words-{'0' * 64}.tar.gz.parts-00000000-1-{'0' * 16}"
    with pytest.raises(PackageError, match="names an interrupted upload"):
        uploader.download(uri, tmp_path / "target")


# -- interrupted uploads


def test_an_upload_continues_a_killed_one(
    uploader: HdfsUploader, options: dict[str, object], stored: Stored, web: WebHdfs, tmp_path: Path
) -> None:
    """Stored parts are not sent again: the first part of the killed upload becomes the package."""
    package = tmp_path / "large"
    package.write_bytes(bytes(range(256)) * (256 * 1024))
    command = second_process("uploader", HdfsUploader, options, str(package), "words")

    def parts() -> dict[str, Entry]:
        folders = [name for name in stored() if ".parts-" in name]
        return {each.name: each for name in folders for each in web.entries(f"{options['root']}/{name}")}

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(parts()) > 4, 30.0, "some parts are there")
        process.kill()
    sent = {name for name in parts() if not name.startswith("new-")}
    first = parts()[f"{0:016d}"]
    assert len(sent) < 64, "the upload had ended before it was killed"
    uri = uploader.upload(package, "words")
    (whole,) = stored().values()
    assert uri.endswith(whole.name)
    assert whole.file_id == first.file_id
    uploader.download(uri, tmp_path / "target")
    assert digest_of(tmp_path / "target") == digest_of(package)


@pytest.mark.parametrize("joined", [False, True])
def test_an_upload_continues_an_old_one_of_another_machine(
    uploader: HdfsUploader, hdfs: HdfsServer, options: dict[str, object], web: WebHdfs, package: Path, *, joined: bool
) -> None:
    """It does so after an hour without a change, by the clock of HDFS, also when all parts are already joined."""
    content, root = package.read_bytes(), options["root"]
    parts = f"{root}/.words-{digest_of(package)}.tar.gz.parts-00000000-1-{'0' * 16}"
    web.make_folder(parts)
    web.write(f"{parts}/{0:016d}", [content if joined else content[: 2**20]])
    first = web.entry(f"{parts}/{0:016d}")
    assert first is not None
    hdfs.ask("PUT", parts, "SETTIMES", modificationtime=first.modified_ms - HOUR_MS - 60_000)
    path = uploader.upload(package, "words").removeprefix("hdfs://")
    whole = web.entry(path)
    assert whole is not None
    assert whole.file_id == first.file_id
    assert b"".join(web.read(path, 0)) == content


def test_parts_are_abandoned_when_their_process_is_gone_or_they_are_old() -> None:
    """Taking over a running upload would break it."""
    now_ms = 10 * HOUR_MS
    here, end = home(), f"-{'0' * 16}"

    def parts(place: str, pid: int, age_ms: int) -> Entry:
        return Entry(f".w-1.tar.gz.parts-{place}-{pid}{end}", 0, now_ms - age_ms, is_folder=True, file_id=1)

    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with subprocess.Popen(["sleep", "60"]) as alive:
        assert is_abandoned(parts(here, ended.pid, 0), now_ms)
        assert not is_abandoned(parts(here, alive.pid, 0), now_ms)
        assert not is_abandoned(parts("00000000", ended.pid, 0), now_ms)
        assert is_abandoned(parts("00000000", alive.pid, HOUR_MS + 1), now_ms)
        alive.kill()
    assert not is_abandoned(Entry("words", 0, 0, is_folder=True, file_id=1), now_ms)


# -- refusals


def test_the_error_names_a_name_node_that_is_not_running(package: Path) -> None:
    """The message has the address and the remedy."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(PackageError, match=f"{url} cannot be reached; check that it is running"):
        HdfsUploader.open({"url": url}).upload(package, "words")


def test_a_token_is_not_shown(package: Path) -> None:
    """Each URL contains the token, and the messages of the HTTP library contain the URL."""
    uploader = HdfsUploader.open({"url": f"http://127.0.0.1:{free_port()}", "token": "kept-to-itself"})
    with pytest.raises(PackageError, match="cannot be reached") as caught:
        uploader.upload(package, "words")
    assert "kept-to-itself" not in str(caught.value)


class RefusingNameNode(BaseHTTPRequestHandler):
    """Answers like a name node with Kerberos to an expired token. Without Kerberos, a name node ignores tokens."""

    def do_GET(self) -> None:
        error = {"exception": "InvalidToken", "message": "token (HDFS_DELEGATION_TOKEN for me) can't be found in cache"}
        body = json.dumps({"RemoteException": error}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_the_error_of_an_expired_token_names_the_remedy(package: Path) -> None:
    """A token is a secret like a password, so the message does not show it."""
    with HTTPServer(("127.0.0.1", 0), RefusingNameNode) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(PackageError, match=r"has expired; set uploader\.token to a new one") as caught:
            HdfsUploader.open({"url": url, "token": "kept-to-itself"}).upload(package, "words")
        server.shutdown()
        thread.join()
    assert "kept-to-itself" not in str(caught.value)


class CuttingGateway(BaseHTTPRequestHandler):
    """A server that cuts each transfer in the middle of a part."""

    transfers = 0

    def do_GET(self) -> None:
        if "op=LISTSTATUS" in self.path:
            self._answer(200, {"FileStatuses": {"FileStatus": []}})
        else:
            self._answer(404, {"RemoteException": {"exception": "FileNotFoundException", "message": "not there"}})

    def do_PUT(self) -> None:
        if "op=CREATE" not in self.path:
            self._answer(200, {"boolean": True})
        elif "to=datanode" not in self.path:
            self._answer(307, {}, Location=f"http://{self.headers['Host']}{self.path}&to=datanode")
        else:
            type(self).transfers += 1
            self.rfile.read(2 * 2**20)
            self.close_connection = True

    def _answer(self, code: int, document: object, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        for key, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_an_upload_fails_when_each_attempt_of_a_part_is_cut(package: Path) -> None:
    """Bytes move in each attempt, but sending the same bytes again is no progress."""
    package.write_bytes(bytes(16 * 2**20))  # more than the buffers of a connection hold
    with HTTPServer(("127.0.0.1", 0), CuttingGateway) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with in_time(STALL_S), pytest.raises(PackageError, match=url):
            HdfsUploader.open({"url": url}).upload(package, "words")
        server.shutdown()
        thread.join()
    assert 1 < CuttingGateway.transfers < 10


def test_the_error_of_a_token_without_the_right_names_its_owner(opened: Opener, package: Path) -> None:
    """Without Kerberos, the name node ignores the token and the user has no rights."""
    with pytest.raises(PackageError, match="permission denied; grant it to the owner of the token"):
        opened(user="", token="of-nobody").upload(package, "words")


@pytest.mark.parametrize("answer_s", [1.0, pytest.param(None, marks=pytest.mark.soak)])
def test_an_upload_to_a_name_node_that_never_answers_fails(
    package: Path, answer_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server accepts connections and sends nothing; the command must still end."""
    if answer_s is not None:
        monkeypatch.setattr("heron_hdfs_kit.web_hdfs._ANSWER_S", answer_s)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            in_time(STALL_S),
            pytest.raises(PackageError, match=f"{url} does not answer in time; check that it is running"),
        ):
            HdfsUploader.open({"url": url}).upload(package, "words")


def test_the_error_of_a_user_without_the_right_names_the_remedy(opened: Opener, package: Path) -> None:
    """The message has the user, the path and the remedy."""
    expected = r"/not-mine/\S+ in .*: cannot be created: permission denied; grant it to user"
    with pytest.raises(PackageError, match=expected):
        opened(root="/not-mine").upload(package, "words")


def test_a_root_that_is_a_file_is_named(
    opened: Opener, web: WebHdfs, options: dict[str, object], package: Path
) -> None:
    """`heron profiles check` reports it before the first upload."""
    web.write(str(options["root"]), [b"a file"])
    with pytest.raises(PackageError, match=r"is a file; choose another uploader\.root"):
        opened().check(5.0)
    with pytest.raises(PackageError, match="a part of the path is a file"):
        opened().upload(package, "words")


def test_a_full_quota_is_named_and_stored_packages_stay(
    uploader: HdfsUploader, hdfs: HdfsServer, options: dict[str, object], package: Path, tmp_path: Path
) -> None:
    """An incomplete package never appears under its name."""
    uri = uploader.upload(package, "words")
    other = tmp_path / "other"
    other.write_bytes(b"other" * 10**6)
    hdfs.ask("PUT", str(options["root"]), "SETQUOTA", namespacequota=2**40, storagespacequota=4 * 2**20)
    with pytest.raises(PackageError, match="the quota is full; run `heron packages prune`"):
        uploader.upload(other, "words")
    assert [each.uri for each in uploader.packages() if each.whole] == [uri]
    uploader.download(uri, tmp_path / "target")
    assert digest_of(tmp_path / "target") == digest_of(package)


def test_a_data_node_that_is_away_is_an_error_and_the_next_upload_succeeds(
    uploader: HdfsUploader, hdfs: HdfsServer, package: Path, tmp_path: Path
) -> None:
    """The name node still answers every request."""
    uri = uploader.upload(package, "words")
    hdfs.data_node.kill()
    try:
        for attempt in (lambda: uploader.download(uri, tmp_path / "t"), lambda: uploader.upload(package, "others")):
            with pytest.raises(PackageError, match=r"data nodes|HDFS reports"):
                attempt()
        assert not (tmp_path / "t").exists()
    finally:
        hdfs.data_node.start()
    uri = uploader.upload(package, "others")
    uploader.download(uri, tmp_path / "t")
    assert digest_of(tmp_path / "t") == digest_of(package)


@pytest.mark.parametrize(
    "options", [{"url": "hdfs://a:8020"}, {"url": "http://a", "root": "x"}, {"url": "http://a", "part_bytes": 1}, {}]
)
def test_invalid_options_are_refused(options: dict[str, object]) -> None:
    """The error names the key, before a connection is made."""
    with pytest.raises(ConfigError, match=r"uploader\.(url|root|part_bytes)"):
        HdfsUploader.open(options)


# -- size


def test_large_packages_take_little_memory(options: dict[str, object], tmp_path: Path, hdfs: HdfsServer) -> None:
    """An upload and a download of half a gigabyte need less than 80 MB, interpreter included."""
    settings = {**options, "url": hdfs.url, "part_bytes": 64 * 2**20}
    assert peak_bytes(HdfsUploader, settings, LARGE_BYTES, tmp_path) < MOST_BYTES

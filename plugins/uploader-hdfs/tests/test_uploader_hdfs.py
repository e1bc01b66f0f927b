"""The HDFS uploader: uploads that go on, names, rights, room, and what it takes of memory."""

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
from heron_testing.contracts.driver import in_time
from heron_testing.pytest_plugin import wait_until
from heron_uploader_hdfs.driver import HdfsUploader
from heron_uploader_hdfs.parts import home, is_abandoned
from heron_uploader_hdfs.web_hdfs import Entry, WebHdfs
from servers.faketime import shifted_clock
from servers.hdfs import HdfsServer
from servers.server_process import free_port

Opener = Callable[..., HdfsUploader]
Stored = Callable[[], dict[str, Entry]]

LARGE_BYTES = 500 * 1024 * 1024
MEMORY_KIB = 80 * 1024
HOUR_MS = 3_600_000
STALL_S = 30.0  # the contract's longest time without progress


@pytest.fixture
def uploader(opened: Opener) -> HdfsUploader:
    return opened()


def digest_of(package: Path) -> str:
    return hashlib.sha256(package.read_bytes()).hexdigest()


# -- the ordinary way


def test_the_uri_names_the_place_and_the_content(
    uploader: HdfsUploader, package: Path, options: dict[str, object], stored: Stored
) -> None:
    """The form is pinned: what one version uploaded another one downloads. Nothing else is left in the folder."""
    file = f"words-{digest_of(package)}.tar.gz"
    assert uploader.upload(package, "words") == f"hdfs://{options['root']}/{file}"
    assert set(stored()) == {file}


def test_other_users_can_read_nothing(uploader: HdfsUploader, opened: Opener, package: Path, tmp_path: Path) -> None:
    """Packages are people's code and may hold what is not meant for others."""
    uri = uploader.upload(package, "words")
    with pytest.raises(PackageError, match="permission denied; give user 'mallory' the right"):
        opened(user="mallory").download(uri, tmp_path / "target")


def test_what_is_there_is_not_sent_again(uploader: HdfsUploader, package: Path, stored: Stored) -> None:
    """A container may be reading it; and it costs time."""
    uploader.upload(package, "words")
    before = stored()
    uploader.upload(package, "words")
    assert stored() == before


def test_progress_grows_to_the_whole(uploader: HdfsUploader, package: Path, tmp_path: Path) -> None:
    """A command shows it as a bar."""
    told: list[tuple[int, int]] = []
    uploader.follow(lambda moved, total: told.append((moved, total)))
    uri = uploader.upload(package, "words")
    size = package.stat().st_size
    assert told == sorted(told)
    assert len(told) >= 4
    assert told[-1] == (size, size)
    told.clear()
    uploader.download(uri, tmp_path / "target")
    assert told == sorted(told)
    assert told[-1] == (size, size)


def test_packages_are_listed_and_can_be_removed(
    uploader: HdfsUploader, package: Path, options: dict[str, object], web: WebHdfs
) -> None:
    """Also what a killed upload of another machine has left; what is not a package is nobody's business."""
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
    """`heron packages prune` goes by them: the only package there is may be old, and our own clock wrong."""
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


def test_a_name_of_an_unfinished_upload_is_no_package(
    uploader: HdfsUploader, options: dict[str, object], tmp_path: Path
) -> None:
    """What is not whole is never run."""
    uri = f"hdfs://{options['root']}/.words-{'0' * 64}.tar.gz.parts-00000000-1-{'0' * 16}"
    with pytest.raises(PackageError, match="names an upload that was cut short"):
        uploader.download(uri, tmp_path / "target")


# -- uploads that are cut short


def test_an_upload_goes_on_where_a_killed_one_ended(
    uploader: HdfsUploader, options: dict[str, object], stored: Stored, web: WebHdfs, tmp_path: Path
) -> None:
    """What was sent is not sent again: the file that the killed one began is the one that is stored in the end."""
    package = tmp_path / "large"
    package.write_bytes(bytes(range(256)) * (256 * 1024))
    entry = f"{HdfsUploader.__module__}:{HdfsUploader.__qualname__}"
    module = "heron_testing.contracts.uploader_actor"
    command = [sys.executable, "-m", module, entry, json.dumps(options), str(package), "words"]

    def parts() -> dict[str, Entry]:
        folders = [name for name in stored() if ".parts-" in name]
        return {each.name: each for name in folders for each in web.entries(f"{options['root']}/{name}")}

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as actor:
        wait_until(lambda: len(parts()) > 4, 30.0, "some parts are there")
        actor.kill()
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
def test_an_upload_goes_on_where_another_machine_ended_long_ago(
    uploader: HdfsUploader, hdfs: HdfsServer, options: dict[str, object], web: WebHdfs, package: Path, *, joined: bool
) -> None:
    """After an hour without anything new, by the clock of HDFS; also where only the last step was missing."""
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
    """Taking over a live upload would break it."""
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


def test_a_name_node_that_is_away_is_named(package: Path) -> None:
    """At once, with what to look at."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(PackageError, match=f"{url} cannot be reached; is it running"):
        HdfsUploader.open({"url": url}).upload(package, "words")


def test_a_token_is_not_shown(package: Path) -> None:
    """The token is in each URL, and so in the messages of the HTTP library."""
    uploader = HdfsUploader.open({"url": f"http://127.0.0.1:{free_port()}", "token": "kept-to-itself"})
    with pytest.raises(PackageError, match="cannot be reached") as caught:
        uploader.upload(package, "words")
    assert "kept-to-itself" not in str(caught.value)


class RefusingNameNode(BaseHTTPRequestHandler):
    """What one with Kerberos says to a token that is over; without Kerberos they look at none."""

    def do_GET(self) -> None:
        said = {"exception": "InvalidToken", "message": "token (HDFS_DELEGATION_TOKEN for me) can't be found in cache"}
        body = json.dumps({"RemoteException": said}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_token_that_is_refused_is_said(package: Path) -> None:
    """What a password is elsewhere: one error with the remedy, and it is not shown."""
    with HTTPServer(("127.0.0.1", 0), RefusingNameNode) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(PackageError, match=r"is refused or over; get a new one for uploader\.token") as caught:
            HdfsUploader.open({"url": url, "token": "kept-to-itself"}).upload(package, "words")
        server.shutdown()
        thread.join()
    assert "kept-to-itself" not in str(caught.value)


class CuttingGateway(BaseHTTPRequestHandler):
    """One that ends each transfer in the middle of a part."""

    transfers = 0

    def do_GET(self) -> None:
        if "op=LISTSTATUS" in self.path:
            self._say(200, {"FileStatuses": {"FileStatus": []}})
        else:
            self._say(404, {"RemoteException": {"exception": "FileNotFoundException", "message": "not there"}})

    def do_PUT(self) -> None:
        if "op=CREATE" not in self.path:
            self._say(200, {"boolean": True})
        elif "to=datanode" not in self.path:
            self._say(307, {}, Location=f"http://{self.headers['Host']}{self.path}&to=datanode")
        else:
            type(self).transfers += 1
            self.rfile.read(2 * 2**20)
            self.close_connection = True

    def _say(self, code: int, document: object, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        for key, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_part_that_is_cut_every_time_is_given_up(package: Path) -> None:
    """That something moves is no progress where it is the same again and again."""
    package.write_bytes(bytes(16 * 2**20))  # more than the buffers of a connection hold
    with HTTPServer(("127.0.0.1", 0), CuttingGateway) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with in_time(STALL_S), pytest.raises(PackageError, match=url):
            HdfsUploader.open({"url": url}).upload(package, "words")
        server.shutdown()
        thread.join()
    assert 1 < CuttingGateway.transfers < 10


def test_the_bearer_of_a_token_without_the_right_is_told_so(opened: Opener, package: Path) -> None:
    """Without Kerberos a token makes nobody of its bearer."""
    with pytest.raises(PackageError, match="permission denied; give the bearer of the token the right"):
        opened(user="", token="of-nobody").upload(package, "words")


def test_a_name_node_that_never_answers_is_given_up(package: Path) -> None:
    """Accepts and is silent: the command has to end by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with in_time(STALL_S), pytest.raises(PackageError, match=f"{url} does not answer in time; is it running"):
            HdfsUploader.open({"url": url}).upload(package, "words")


def test_a_user_without_the_right_is_told_so(opened: Opener, package: Path) -> None:
    """With the user, the place and what to do."""
    with pytest.raises(PackageError, match=r"/not-mine/\S+ in .*: cannot be made: permission denied; give user"):
        opened(root="/not-mine").upload(package, "words")


def test_a_file_at_the_root_is_said(opened: Opener, web: WebHdfs, options: dict[str, object], package: Path) -> None:
    """`heron profiles check` finds it before an upload does."""
    web.write(str(options["root"]), [b"a file"])
    with pytest.raises(PackageError, match=r"is a file; choose another uploader\.root"):
        opened().check(5.0)
    with pytest.raises(PackageError, match="a part of the path is a file"):
        opened().upload(package, "words")


def test_a_full_quota_is_said_and_what_was_there_stays(
    uploader: HdfsUploader, hdfs: HdfsServer, options: dict[str, object], package: Path, tmp_path: Path
) -> None:
    """Nothing appears under the name of a package that is not whole."""
    uri = uploader.upload(package, "words")
    other = tmp_path / "other"
    other.write_bytes(b"other" * 10**6)
    hdfs.ask("PUT", str(options["root"]), "SETQUOTA", namespacequota=2**40, storagespacequota=4 * 2**20)
    with pytest.raises(PackageError, match="the quota is used up; make room"):
        uploader.upload(other, "words")
    assert [each.uri for each in uploader.packages() if each.whole] == [uri]
    uploader.download(uri, tmp_path / "target")
    assert digest_of(tmp_path / "target") == digest_of(package)


def test_a_data_node_that_is_away_is_an_error_and_the_next_upload_succeeds(
    uploader: HdfsUploader, hdfs: HdfsServer, package: Path, tmp_path: Path
) -> None:
    """The name node answers as if nothing were wrong."""
    uri = uploader.upload(package, "words")
    hdfs.data_node.kill()
    try:
        for attempt in (lambda: uploader.download(uri, tmp_path / "t"), lambda: uploader.upload(package, "others")):
            with pytest.raises(PackageError, match=r"data nodes|HDFS says"):
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
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    """Before anything is asked of a server."""
    with pytest.raises(ConfigError, match=r"uploader\.(url|root|part_bytes)"):
        HdfsUploader.open(options)


# -- size


def test_large_packages_take_little_memory(options: dict[str, object], tmp_path: Path, hdfs: HdfsServer) -> None:
    """Half a gigabyte goes up and down in less than 80 MB, the interpreter included."""
    package, block = tmp_path / "large", hashlib.sha256(b"").digest() * 32 * 1024
    with package.open("wb") as file:
        for number in range(LARGE_BYTES // len(block)):
            file.write(number.to_bytes(8, "big") + block[8:])
    settings = {**options, "url": hdfs.url, "part_bytes": 64 * 2**20}
    code = (
        "import json, sys; from pathlib import Path; from heron_uploader_hdfs.driver import HdfsUploader\n"
        "uploader = HdfsUploader.open(json.loads(sys.argv[1]))\n"
        "uri = uploader.upload(Path(sys.argv[2]), 'large'); uploader.download(uri, Path(sys.argv[3]))\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    target = tmp_path / "target"
    command = [sys.executable, "-c", code, json.dumps(settings), str(package), str(target)]
    peak_kib = int(subprocess.check_output(command, text=True))
    assert target.stat().st_size == LARGE_BYTES
    assert peak_kib < MEMORY_KIB

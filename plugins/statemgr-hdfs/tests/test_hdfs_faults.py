"""Faults of HDFS, missing rights and quotas, changes by hand, and expired leases."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from heron.clock import monotonic_s
from heron.errors import ConfigError, StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, Versioned
from heron_statemgr_hdfs.driver import HdfsStateManager
from heron_statemgr_hdfs.web_hdfs import Entry, WebHdfs
from heron_testing.contracts.driver import in_time
from heron_testing.ports import free_port
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer

KIND = NodeKind.PHYSICAL_PLAN
BACK_S = 60.0  # a name node that starts on a busy machine
HOUR_MS = 3_600_000

Opener = Callable[..., HdfsStateManager]
Files = Callable[[str], dict[str, Entry]]


@pytest.fixture
def manager(opened: Opener) -> HdfsStateManager:
    return opened()


@pytest.fixture
def files(hdfs: HdfsServer, options: dict[str, object]) -> Files:
    """List a folder below the root."""
    web = WebHdfs(hdfs.url, "heron", "")

    def listed(folder: str) -> dict[str, Entry]:
        return {each.name: each for each in web.entries(f"{options['root']}/{folder}") or ()}

    return listed


def reads(manager: HdfsStateManager, value: bytes) -> bool:
    try:
        present = manager.get(KIND, "t")
    except StateUnavailableError:
        return False
    assert present is not None
    return present.value == value


def lists(manager: HdfsStateManager) -> bool:
    try:
        return bool(manager.list(NodeKind.TMANAGER_LOCATION))
    except StateUnavailableError:
        return False


# -- servers


def test_the_error_for_an_absent_name_node_names_it() -> None:
    """The operator sees which server is down."""
    url = f"http://127.0.0.1:{free_port()}"
    manager = HdfsStateManager.open({"url": url})
    with pytest.raises(StateUnavailableError, match=f"{url} cannot be reached; check that it is running"):
        manager.get(KIND, "t")
    manager.close()


class OtherServer(BaseHTTPRequestHandler):
    """A web server that is not WebHDFS."""

    code = 404

    def do_GET(self) -> None:
        self.send_response(self.code)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.mark.parametrize("code", [200, 404, 500])
def test_another_server_at_the_address_is_reported(code: int) -> None:
    """The RPC port of the name node, or the port of a data node, is the most common mistake."""
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (OtherServer,), {"code": code}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    manager = HdfsStateManager.open({"url": f"http://127.0.0.1:{server.server_port}"})
    try:
        with pytest.raises(StateUnavailableError, match=r"not WebHDFS; check that statemgr\.url is the web"):
            manager.get(KIND, "t")
    finally:
        manager.close()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "options",
    [
        {"url": "hdfs://127.0.0.1:8020"},
        {"url": "http://127.0.0.1:9870/webhdfs/v1"},
        {"url": "http://a:9870", "root": "heron"},
        {"url": "http://a:9870", "root": "/heron/../other"},
        {"url": "http://a:9870", "root": "/heron/#LATEST"},
        {"url": "http://a:9870", "lease_s": 60.0},
        {},
    ],
)
def test_invalid_options_are_refused(options: dict[str, object]) -> None:
    """`open` raises, before any request."""
    with pytest.raises(ConfigError, match=r"statemgr\.(url|root|lease_s)|root '/heron"):
        HdfsStateManager.open(options)


def test_the_second_name_node_is_asked_when_the_first_is_away(opened: Opener, hdfs: HdfsServer) -> None:
    """With high availability, `url` lists several name nodes, and one of them answers."""
    manager = opened(url=f"http://127.0.0.1:{free_port()};{hdfs.url}")
    assert manager.set(KIND, "t", b"one") == 1
    assert manager.get(KIND, "t") == Versioned(b"one", 1)


def test_values_and_holds_survive_a_kill_of_both_nodes(opened: Opener, hdfs: HdfsServer) -> None:
    """The topology manager still leads: no holder is declared dead while no holder could renew its lease."""
    manager, other = opened(), opened()
    manager.set(KIND, "t", b"one")
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    seen: queue.Queue[Versioned | None] = queue.Queue()
    places: queue.Queue[Versioned | None] = queue.Queue()
    other.watch(KIND, "t", seen.put)
    other.watch(NodeKind.TMANAGER_LOCATION, "t", places.put)
    hdfs.kill()
    with pytest.raises(StateUnavailableError):
        manager.get(KIND, "t")
    hdfs.start()
    wait_until(lambda: reads(manager, b"one"), BACK_S, "HDFS answers again")
    version = manager.set(KIND, "t", b"two", expected=1)
    assert seen.get(timeout=5) == Versioned(b"one", 1)
    assert seen.get(timeout=5) == Versioned(b"two", version)
    with pytest.raises(StateConflictError, match="tmanagers/t is held by another live process"):
        other.hold(NodeKind.TMANAGER_LOCATION, "t", b"there")
    assert not hold.lost()
    assert places.get(timeout=5) == Versioned(b"here", hold.epoch)
    assert places.empty()


def test_without_a_data_node_values_are_unavailable_and_holds_continue(opened: Opener, hdfs: HdfsServer) -> None:
    """An unavailable value is an error, not a missing node. Holds need no data node. Nothing is half written."""
    manager = opened()
    manager.set(KIND, "t", b"one")
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    hdfs.data_node.kill()
    try:
        for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"two", expected=1)):
            with pytest.raises(StateUnavailableError, match=r"data nodes|HDFS reports"):
                attempt()
        assert manager.list(KIND) == ("t",)
        assert not hold.lost()
    finally:
        hdfs.data_node.start()
    wait_until(lambda: reads(manager, b"one"), BACK_S, "values can be read again")
    assert manager.set(KIND, "t", b"two", expected=1) == 2
    hold.release()


# -- rights and room


def test_the_error_for_a_missing_right_names_the_user_and_the_folder(opened: Opener) -> None:
    """The message has the remedy too."""
    manager = opened(root="/not-mine")
    with pytest.raises(
        StateError, match=r"/not-mine/new/\w+ in HDFS.*cannot be created: permission denied; grant it to user 'heron'"
    ) as caught:
        manager.set(KIND, "t", b"one")
    assert not isinstance(caught.value, StateUnavailableError)


def test_other_users_can_read_nothing(opened: Opener, files: Files) -> None:
    """The value of KEYS gives full access to the topology."""
    manager, other = opened(), opened(user="mallory")
    manager.set(NodeKind.KEYS, "t", b"secret")
    for attempt in (
        lambda: other.get(NodeKind.KEYS, "t"),
        lambda: other.set(NodeKind.KEYS, "t", b"mine"),
        lambda: other.list(NodeKind.KEYS),
        lambda: other.check(5.0),
    ):
        with pytest.raises(StateError, match="permission denied; grant it to user 'mallory'"):
            attempt()
    assert files("keys/t")


def test_a_token_is_not_shown(opened: Opener) -> None:
    """The token is in each URL, and therefore in the messages of the HTTP library."""
    manager = opened(url=f"http://127.0.0.1:{free_port()}", token="kept-to-itself", user="")
    with pytest.raises(StateError, match="cannot be reached") as caught:
        manager.get(KIND, "t")
    assert "kept-to-itself" not in str(caught.value)
    assert "kept-to-itself" in str(caught.value.__cause__)  # so the driver must not use this text


class RefusingNameNode(BaseHTTPRequestHandler):
    """Refuses an expired token, as a name node with Kerberos does. Without Kerberos a name node ignores tokens."""

    def do_GET(self) -> None:
        refusal = {
            "exception": "InvalidToken",
            "message": "token (HDFS_DELEGATION_TOKEN for me) can't be found in cache",
        }
        body = json.dumps({"RemoteException": refusal}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_refused_token_is_reported() -> None:
    """The token is secret, so no message shows it. The error is final, so callers do not retry."""
    with HTTPServer(("127.0.0.1", 0), RefusingNameNode) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        manager = HdfsStateManager.open({"url": url, "token": "kept-to-itself"})
        for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"one")):
            with pytest.raises(StateError, match=r"has expired; set statemgr\.token to a new one") as caught:
                attempt()
            assert not isinstance(caught.value, StateUnavailableError)
            assert "kept-to-itself" not in str(caught.value)
        manager.close()
        server.shutdown()
        thread.join()


def test_a_full_quota_changes_nothing(
    opened: Opener, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """The previous value stays, no file of the new value remains, and the message names the remedy."""
    manager = opened()
    manager.set(KIND, "t", b"one")
    before = set(files("pplans/t"))
    folder = str(options["root"])
    hdfs.ask("PUT", folder, "SETQUOTA", namespacequota=2**40, storagespacequota=1024)
    for attempt in (
        lambda: manager.set(KIND, "t", b"x" * 4096),
        lambda: manager.set(KIND, "new", b"x" * 4096),
        lambda: manager.hold(NodeKind.LOCK, "t", b"x" * 4096),
    ):
        with pytest.raises(StateError, match="the quota is full; make room, or raise it"):
            attempt()
    assert manager.get(KIND, "t") == Versioned(b"one", 1)
    assert set(files("pplans/t")) == before
    assert manager.list(KIND) == ("t",)
    assert not files("new")


# -- changes by hand


def test_a_value_removed_by_hand_is_reported_and_a_write_repairs_it(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """The error names the folder, and a new submission repairs it."""
    manager.set(KIND, "t", b"one")
    (value,) = (name for name in files("pplans/t") if name.startswith("value."))
    hdfs.ask("DELETE", f"{options['root']}/pplans/t/{value}", "DELETE")
    with pytest.raises(StateError, match=r"pplans/t in HDFS at .*its value is missing, so somebody changed it by hand"):
        manager.get(KIND, "t")
    version = manager.set(KIND, "t", b"two")
    assert manager.get(KIND, "t") == Versioned(b"two", version)


def test_a_pointer_removed_by_hand_is_reported(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """If versions started again at 1, receivers would accept old messages."""
    manager.set(KIND, "t", b"one")
    (pointer,) = (name for name in files("pplans/t") if name.startswith("node."))
    hdfs.ask("DELETE", f"{options['root']}/pplans/t/{pointer}", "DELETE")
    for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"two")):
        with pytest.raises(StateError, match=r"it has no pointer.*if no topology of that name runs, remove the folder"):
            attempt()


def test_foreign_files_are_ignored(manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object]) -> None:
    """Tools leave files, and people create folders."""
    manager.set(KIND, "t", b"one")
    for path in ("pplans/t/_SUCCESS", "pplans/.hidden", "pplans/ü", "other"):
        hdfs.ask("PUT", f"{options['root']}/{path}".replace("ü", "%C3%BC"), "MKDIRS")
    assert manager.list(KIND) == ("t",)
    assert manager.get(KIND, "t") == Versioned(b"one", 1)


def test_old_files_of_killed_writers_are_removed(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """Only the clock of HDFS counts. A young file may belong to a live writer."""
    manager.set(KIND, "t", b"one")
    manager.set(KIND, "other", b"one")
    web = WebHdfs(hdfs.url, "heron", "")
    root = options["root"]
    old, young = f"value.{'0' * 16}", f"value.{'1' * 16}"
    for name in (old, young):
        web.write(f"{root}/pplans/t/{name}", b"left")
    web.make_folder(f"{root}/new/draft")
    (present,) = (
        each for each in files("pplans/t").values() if each.name not in (old, young, "") and each.name[0] == "v"
    )
    web.set_modified(f"{root}/pplans/t/{old}", present.modified_ms - HOUR_MS)
    hdfs.ask("PUT", f"{root}/new/draft", "SETTIMES", modificationtime=present.modified_ms - HOUR_MS)
    manager.set(KIND, "t", b"two")
    assert old not in files("pplans/t")
    assert young in files("pplans/t")
    web.make_folder(f"{root}/new/now")
    manager.set(KIND, "third", b"one")
    assert set(files("new")) == {"now"}


# -- leases


def test_a_holder_that_is_cut_off_loses_its_hold_to_the_next(opened: Opener, relay: Relay, hdfs: HdfsServer) -> None:
    """Other processes cannot distinguish it from a dead holder. It learns of the loss when HDFS answers again."""
    cut_off, other = opened(), opened(url=hdfs.url)
    hold = cut_off.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    relay.swallows = True
    successor = wait_until(lambda: held_epoch(other), 30.0, "another process holds the node")
    assert successor > hold.epoch
    relay.swallows = False
    relay.cut()
    wait_until(hold.lost, 20.0, "the former hold is lost")
    hold.release()
    assert other.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"there", successor)


def test_no_holder_is_declared_dead_while_hdfs_is_read_only(opened: Opener, hdfs: HdfsServer) -> None:
    """A starting name node can be read-only for minutes (safe mode). No holder can renew its lease then."""
    manager, other = opened(lease_s=1.0), opened(lease_s=1.0)
    for number in range(3):  # a name node without blocks has no safe mode
        manager.set(KIND, f"t{number}", b"one")
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    hdfs.kill()
    hdfs.name_node.start()
    try:
        wait_until(lambda: lists(other), BACK_S, "the name node can be read")
        until_s = monotonic_s() + 3.0
        while monotonic_s() < until_s:
            assert other.list(NodeKind.TMANAGER_LOCATION) == ("t",)
        with pytest.raises(StateUnavailableError, match="safe mode"):
            manager.set(KIND, "t", b"one")
    finally:
        hdfs.data_node.start()
    wait_until(lambda: other.get(NodeKind.TMANAGER_LOCATION, "t"), BACK_S, "values can be read")
    assert other.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"here", hold.epoch)
    assert not hold.lost()


def test_close_does_not_wait_for_a_silent_server(opened: Opener, relay: Relay, hdfs: HdfsServer) -> None:
    """An executor and its processes have five seconds to end. An unreleased lease expires."""
    manager, other = opened(), opened(url=hdfs.url)
    seen: queue.Queue[Versioned | None] = queue.Queue()
    for number in range(4):
        manager.watch(NodeKind.TMANAGER_LOCATION, f"t{number}", seen.put)
    for number in range(2):
        manager.hold(NodeKind.LOCK, f"t{number}", b"mine")
    relay.swallows = True
    before = relay.swallowed_bytes
    wait_until(lambda: relay.swallowed_bytes > before, 10.0, "a poll without an answer")
    with in_time(2.0):
        manager.close()
    manager.close()
    relay.swallows = False
    relay.cut()
    other.set(NodeKind.TMANAGER_LOCATION, "t0", b"here")
    wait_until(lambda: not other.list(NodeKind.LOCK), 30.0, "the leases expire")
    assert seen.qsize() == 4, "a watch of a closed manager reported a change"


def held_epoch(manager: HdfsStateManager) -> int:
    try:
        return manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"there").epoch
    except StateConflictError:
        return 0


@pytest.mark.parametrize("shift_ms", [-HOUR_MS, HOUR_MS])
def test_clocks_that_differ_by_an_hour_do_not_matter(
    opened: Opener,
    hdfs: HdfsServer,
    options: dict[str, object],
    files: Files,
    shift_ms: int,
) -> None:
    """Modification times are compared with each other, never with a clock."""
    manager, other = opened(), opened()
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    (value,) = (each for each in files("tmanagers/t").values() if each.name.startswith("value."))
    path = f"{options['root']}/tmanagers/t/{value.name}"
    hdfs.ask("PUT", path, "SETTIMES", modificationtime=value.modified_ms + shift_ms)
    with pytest.raises(StateConflictError):
        other.hold(NodeKind.TMANAGER_LOCATION, "t", b"there")
    wait_until(
        lambda: files("tmanagers/t")[value.name].modified_ms not in (value.modified_ms + shift_ms, value.modified_ms),
        10.0,
        "the holder renews from the present time",
    )
    assert not hold.lost()


def test_an_ordinary_node_can_be_held_and_release_removes_it(opened: Opener) -> None:
    """A lock that somebody wrote by hand has no holder."""
    manager = opened()
    version = manager.set(NodeKind.LOCK, "t", b"by hand", expected=MUST_NOT_EXIST)
    hold = manager.hold(NodeKind.LOCK, "t", b"mine")
    assert hold.epoch > version
    manager.set(NodeKind.LOCK, "t", b"still mine")
    assert not hold.lost()
    with pytest.raises(StateConflictError):
        opened().hold(NodeKind.LOCK, "t", b"yours")
    hold.release()
    assert manager.get(NodeKind.LOCK, "t") is None


def test_a_closed_manager_raises(manager: HdfsStateManager) -> None:
    """Use after close is a mistake of the caller. It must not look like an empty store."""
    manager.close()
    with pytest.raises(StateError, match="is closed"):
        manager.get(KIND, "t")


def test_a_file_at_the_root_is_reported(opened: Opener, hdfs: HdfsServer, options: dict[str, object]) -> None:
    """`heron profiles check` finds it before a topology does."""
    web = WebHdfs(hdfs.url, "heron", "")
    web.write(str(options["root"]), b"a file")
    with pytest.raises(StateError, match="there is a file where a folder is needed"):
        opened().check(5.0)
    with pytest.raises(StateError, match="a part of the path is a file"):
        opened().set(KIND, "t", b"one")

"""What HDFS, its operators and other people do to nodes."""

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
from heron_testing.pytest_plugin import wait_until
from heron_testing.relay import Relay
from servers.hdfs import HdfsServer
from servers.server_process import free_port

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
    """What is in a folder below the root, as an operator sees it."""
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


def test_a_name_node_that_is_away_is_named() -> None:
    """Nobody should have to guess which of his servers is down."""
    url = f"http://127.0.0.1:{free_port()}"
    manager = HdfsStateManager.open({"url": url})
    with pytest.raises(StateUnavailableError, match=f"{url} cannot be reached; is it running"):
        manager.get(KIND, "t")
    manager.close()


class OtherServer(BaseHTTPRequestHandler):
    """Some web server, which is not WebHDFS."""

    code = 404

    def do_GET(self) -> None:
        self.send_response(self.code)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.mark.parametrize("code", [200, 404, 500])
def test_another_server_at_the_address_is_said(code: int) -> None:
    """The port of the name node's RPC, or of a data node, is the commonest slip."""
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (OtherServer,), {"code": code}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    manager = HdfsStateManager.open({"url": f"http://127.0.0.1:{server.server_port}"})
    try:
        with pytest.raises(StateUnavailableError, match="not WebHDFS; is 'url' the web address of a name node"):
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
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    """Before anything is asked of a server."""
    with pytest.raises(ConfigError, match=r"statemgr\.(url|root|lease_s)|root '/heron"):
        HdfsStateManager.open(options)


def test_the_second_name_node_is_asked_when_the_first_is_away(opened: Opener, hdfs: HdfsServer) -> None:
    """High availability is a list of name nodes, of which one answers."""
    manager = opened(url=f"http://127.0.0.1:{free_port()};{hdfs.url}")
    assert manager.set(KIND, "t", b"one") == 1
    assert manager.get(KIND, "t") == Versioned(b"one", 1)


def test_all_is_there_and_held_after_both_nodes_were_killed(opened: Opener, hdfs: HdfsServer) -> None:
    """The topology manager goes on leading: while nobody could renew, nobody was taken for dead."""
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


def test_without_a_data_node_nothing_is_half_done(opened: Opener, hdfs: HdfsServer) -> None:
    """Values are unreachable then, which is not the same as absent; holds go on, as they need no data node."""
    manager = opened()
    manager.set(KIND, "t", b"one")
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    hdfs.data_node.kill()
    try:
        for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"two", expected=1)):
            with pytest.raises(StateUnavailableError, match=r"data nodes|HDFS says"):
                attempt()
        assert manager.list(KIND) == ("t",)
        assert not hold.lost()
    finally:
        hdfs.data_node.start()
    wait_until(lambda: reads(manager, b"one"), BACK_S, "values can be read again")
    assert manager.set(KIND, "t", b"two", expected=1) == 2
    hold.release()


# -- rights and room


def test_a_user_without_the_right_is_told_so(opened: Opener) -> None:
    """With the user, the place and what to do."""
    manager = opened(root="/not-mine")
    with pytest.raises(
        StateError, match=r"make /not-mine/new/\w+ in HDFS.*permission denied; give user 'heron'"
    ) as got:
        manager.set(KIND, "t", b"one")
    assert not isinstance(got.value, StateUnavailableError)


def test_other_users_can_read_nothing(opened: Opener, files: Files) -> None:
    """The value of KEYS opens the topology."""
    manager, other = opened(), opened(user="mallory")
    manager.set(NodeKind.KEYS, "t", b"secret")
    for attempt in (
        lambda: other.get(NodeKind.KEYS, "t"),
        lambda: other.set(NodeKind.KEYS, "t", b"mine"),
        lambda: other.list(NodeKind.KEYS),
        lambda: other.check(5.0),
    ):
        with pytest.raises(StateError, match="permission denied; give user 'mallory' the right"):
            attempt()
    assert files("keys/t")


def test_a_token_is_not_shown(opened: Opener) -> None:
    """The token is in each URL, and so in the messages of the HTTP library."""
    manager = opened(url=f"http://127.0.0.1:{free_port()}", token="kept-to-itself", user="")
    with pytest.raises(StateError, match="cannot be reached") as caught:
        manager.get(KIND, "t")
    assert "kept-to-itself" not in str(caught.value)
    assert "kept-to-itself" in str(caught.value.__cause__)  # which is why


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


def test_a_token_that_is_refused_is_said() -> None:
    """What a password is elsewhere; it is not shown, and nobody waits for it to become better."""
    with HTTPServer(("127.0.0.1", 0), RefusingNameNode) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        manager = HdfsStateManager.open({"url": url, "token": "kept-to-itself"})
        for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"one")):
            with pytest.raises(StateError, match="is refused or over; get a new one for 'token'") as caught:
                attempt()
            assert not isinstance(caught.value, StateUnavailableError)
            assert "kept-to-itself" not in str(caught.value)
        manager.close()
        server.shutdown()
        thread.join()


def test_a_full_quota_changes_nothing(
    opened: Opener, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """The old value stays, nothing is left of the new one, and the message says what to do."""
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
        with pytest.raises(StateError, match="the quota is used up; make room, or raise it"):
            attempt()
    assert manager.get(KIND, "t") == Versioned(b"one", 1)
    assert set(files("pplans/t")) == before
    assert manager.list(KIND) == ("t",)
    assert not files("new")


# -- other hands


def test_a_value_that_was_removed_by_hand_is_said_and_can_be_written(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """One clear error with the place; and a new submission repairs it."""
    manager.set(KIND, "t", b"one")
    (value,) = (name for name in files("pplans/t") if name.startswith("value."))
    hdfs.ask("DELETE", f"{options['root']}/pplans/t/{value}", "DELETE")
    with pytest.raises(StateError, match=r"pplans/t in HDFS at .*its value is not there, somebody changed it by hand"):
        manager.get(KIND, "t")
    version = manager.set(KIND, "t", b"two")
    assert manager.get(KIND, "t") == Versioned(b"two", version)


def test_a_pointer_that_was_removed_by_hand_is_said(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """Beginning again at version 1 would make old messages pass for new ones."""
    manager.set(KIND, "t", b"one")
    (pointer,) = (name for name in files("pplans/t") if name.startswith("node."))
    hdfs.ask("DELETE", f"{options['root']}/pplans/t/{pointer}", "DELETE")
    for attempt in (lambda: manager.get(KIND, "t"), lambda: manager.set(KIND, "t", b"two")):
        with pytest.raises(
            StateError, match=r"it has no pointer.*remove the folder when no topology of that name runs"
        ):
            attempt()


def test_files_of_others_do_not_matter(manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object]) -> None:
    """Tools leave files, and people make folders."""
    manager.set(KIND, "t", b"one")
    for path in ("pplans/t/_SUCCESS", "pplans/.hidden", "pplans/ü", "other"):
        hdfs.ask("PUT", f"{options['root']}/{path}".replace("ü", "%C3%BC"), "MKDIRS")
    assert manager.list(KIND) == ("t",)
    assert manager.get(KIND, "t") == Versioned(b"one", 1)


def test_what_killed_writers_left_goes_when_it_is_old(
    manager: HdfsStateManager, hdfs: HdfsServer, options: dict[str, object], files: Files
) -> None:
    """By the clock of HDFS alone; what is young may be of a writer that lives."""
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
    web.stamp(f"{root}/pplans/t/{old}", present.modified_ms - HOUR_MS)
    hdfs.ask("PUT", f"{root}/new/draft", "SETTIMES", modificationtime=present.modified_ms - HOUR_MS)
    manager.set(KIND, "t", b"two")
    assert old not in files("pplans/t")
    assert young in files("pplans/t")
    web.make_folder(f"{root}/new/now")
    manager.set(KIND, "third", b"one")
    assert set(files("new")) == {"now"}


# -- leases


def test_a_holder_that_is_cut_off_loses_its_hold_to_the_next(opened: Opener, relay: Relay, hdfs: HdfsServer) -> None:
    """It cannot be told from a dead one; it learns of it as soon as HDFS answers, and its epoch is the lower one."""
    cut_off, other = opened(), opened(url=hdfs.url)
    hold = cut_off.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
    relay.swallows = True
    successor = wait_until(lambda: taken(other), 30.0, "the hold is taken over")
    assert successor > hold.epoch
    relay.swallows = False
    relay.cut()
    wait_until(hold.lost, 20.0, "the former holder knows")
    hold.release()
    assert other.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"there", successor)


def test_nobody_is_taken_for_dead_while_hdfs_cannot_be_written(opened: Opener, hdfs: HdfsServer) -> None:
    """A name node that starts may be read for minutes before it can be written (safe mode); nobody can renew then."""
    manager, other = opened(lease_s=1.0), opened(lease_s=1.0)
    for number in range(3):  # without blocks to be found there is no safe mode
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


def test_closing_waits_for_nobody_who_does_not_answer(opened: Opener, relay: Relay, hdfs: HdfsServer) -> None:
    """An executor has five seconds to end, its processes included; what it held lapses without it."""
    manager, other = opened(), opened(url=hdfs.url)
    told: queue.Queue[Versioned | None] = queue.Queue()
    for number in range(4):
        manager.watch(NodeKind.TMANAGER_LOCATION, f"t{number}", told.put)
    for number in range(2):
        manager.hold(NodeKind.LOCK, f"t{number}", b"mine")
    relay.swallows = True
    before = relay.swallowed_bytes
    wait_until(lambda: relay.swallowed_bytes > before, 10.0, "a look that is not answered")
    with in_time(2.0):
        manager.close()
    manager.close()
    relay.swallows = False
    relay.cut()
    other.set(NodeKind.TMANAGER_LOCATION, "t0", b"here")
    wait_until(lambda: not other.list(NodeKind.LOCK), 30.0, "the leases are over")
    assert told.qsize() == 4, "a watch of a closed manager told something"


def taken(manager: HdfsStateManager) -> int:
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
    """Times of change are marks that are compared with themselves, never with a clock."""
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
        "the holder goes on from the time that is there",
    )
    assert not hold.lost()


def test_an_ordinary_node_can_be_taken_and_is_gone_with_the_hold(opened: Opener) -> None:
    """A lock that somebody wrote by hand is nobody's."""
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


def test_a_closed_manager_says_so(manager: HdfsStateManager) -> None:
    """Use after close is a mistake of the caller that must not look like an empty store."""
    manager.close()
    with pytest.raises(StateError, match="is closed"):
        manager.get(KIND, "t")


def test_a_file_at_the_root_is_said(opened: Opener, hdfs: HdfsServer, options: dict[str, object]) -> None:
    """`heron profiles check` finds it before a topology does."""
    web = WebHdfs(hdfs.url, "heron", "")
    web.write(str(options["root"]), b"a file")
    with pytest.raises(StateError, match="a file stands where a folder belongs"):
        opened().check(5.0)
    with pytest.raises(StateError, match="a part of the path is a file"):
        opened().set(KIND, "t", b"one")

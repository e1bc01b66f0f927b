"""The HDFS checkpoint store: the contract on a real HDFS, partial files, refusals."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from heron.errors import CheckpointError, ConfigError
from heron_checkpoint_hdfs.driver import ERRORS, HdfsCheckpointStore
from heron_hdfs_kit.owner import home, new_owner
from heron_hdfs_kit.web_hdfs import WebHdfs
from heron_testing.contracts.checkpoint import CheckpointStoreContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.hdfs import HdfsServer

NAME = "words/words-1/0000000001/task-1"


@pytest.fixture
def relay(hdfs: HdfsServer) -> Iterator[Relay]:
    """Connects the driver to the name node, and can cut the connections."""
    relay = Relay(hdfs.address)
    yield relay
    relay.close()


@pytest.fixture
def options(hdfs: HdfsServer, relay: Relay) -> dict[str, object]:
    """Options for a new folder that belongs to a user without other rights."""
    folder = f"/{secrets.token_hex(8)}"
    hdfs.make_folder(folder, owner="heron")
    host, port = relay.address
    return {"url": f"http://{host}:{port}", "root": f"{folder}/checkpoints", "user": "heron"}


class TestContract(CheckpointStoreContract):
    name = "hdfs"
    driver_class = HdfsCheckpointStore

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)


@pytest.fixture
def store(options: dict[str, object]) -> HdfsCheckpointStore:
    return HdfsCheckpointStore.open(options)


@pytest.fixture
def web(hdfs: HdfsServer) -> Iterator[WebHdfs]:
    """HDFS as the user of the checkpoints sees it, without a relay."""
    with WebHdfs(hdfs.url, "heron", "", ERRORS) as web:
        web.limit(600.0)  # tests may wait long between two calls
        yield web


def test_a_store_leaves_no_partial_file(store: HdfsCheckpointStore, web: WebHdfs, options: dict[str, object]) -> None:
    """Partial files that stay would fill HDFS."""
    store.store(NAME, b"state")
    assert [each.name for each in web.entries(f"{options['root']}/{NAME.rpartition('/')[0]}")] == ["task-1"]


def test_other_users_can_read_nothing(store: HdfsCheckpointStore, options: dict[str, object]) -> None:
    """State contains the data of users."""
    store.store(NAME, b"state")
    with pytest.raises(CheckpointError, match=r"permission denied; grant it to user 'mallory', .* checkpoint\.root"):
        HdfsCheckpointStore.open({**options, "user": "mallory"}).load(NAME)


def test_dispose_removes_the_partial_files_of_dead_processes(
    store: HdfsCheckpointStore, web: WebHdfs, options: dict[str, object]
) -> None:
    """Nobody lists them, so nobody names them. Those of running processes, and of other machines, stay for now."""
    store.store(NAME, b"state")
    folder = f"{options['root']}/words/words-1/0000000007"
    web.make_folder(folder)
    no_process = 2**22 + 1  # the limit of process ids
    dead = f".task-2.part-{home()}-{no_process}-{'0' * 16}"
    others = [f".task-3.part-{new_owner()}", f".task-4.part-00000000-{os.getpid()}-{'0' * 16}"]
    for each in (dead, *others):
        web.write(f"{folder}/{each}", [b"part"])
    store.dispose(["words/words-1/0000000001/task-9"])
    assert [each.name for each in web.entries(folder)] == sorted(others)
    assert [each.name for each in store.list("words")] == [NAME]


def test_dispose_removes_empty_folders_up_to_the_root(
    store: HdfsCheckpointStore, web: WebHdfs, options: dict[str, object]
) -> None:
    """A name node keeps each folder in its memory."""
    root = str(options["root"])
    store.store(NAME, b"state")
    store.store("other/task-1", b"state")
    store.dispose([NAME])
    assert [each.name for each in web.entries(root)] == ["other"]
    store.dispose(["other/task-1"])
    assert web.entries(root) == ()
    assert web.entry(root) is not None


def test_an_object_that_is_replaced_during_a_load_is_loaded_again(
    store: HdfsCheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is that of the former object, and the bytes are those of the new one."""
    store.store(NAME, b"former")
    read = WebHdfs.read

    def read_after_store(self: WebHdfs, path: str, offset: int, size_bytes: int | None = None) -> Iterator[bytes]:
        monkeypatch.setattr(WebHdfs, "read", read)
        store.store(NAME, b"the next one")
        return read(self, path, offset, size_bytes)

    monkeypatch.setattr(WebHdfs, "read", read_after_store)
    assert store.load(NAME) == b"the next one"


def test_a_full_quota_is_named_and_keeps_the_former_object(
    store: HdfsCheckpointStore, hdfs: HdfsServer, options: dict[str, object]
) -> None:
    """The error names both remedies: other checkpoints, and the quota."""
    store.store(NAME, b"former")
    hdfs.ask("PUT", str(options["root"]), "SETQUOTA", namespacequota=5)
    with pytest.raises(CheckpointError, match="the quota is full; delete checkpoints with `heron checkpoints`"):
        store.store("words/words-1/0000000002/task-1", b"state")
    assert [each.name for each in store.list("words")] == [NAME]
    assert store.load(NAME) == b"former"


def test_a_server_that_is_not_hdfs_is_named(options: dict[str, object]) -> None:
    """The most common mistake is the port of another protocol."""
    with pytest.raises(CheckpointError, match="cannot be reached"):
        HdfsCheckpointStore.open({**options, "url": "http://127.0.0.1:1"}).store(NAME, b"state")


def test_a_root_that_is_a_file_is_named(options: dict[str, object], web: WebHdfs) -> None:
    """`heron profiles check` finds it before a topology starts."""
    web.write(str(options["root"]), [b"a file"])
    with pytest.raises(CheckpointError, match=r"is a file; choose another checkpoint\.root"):
        HdfsCheckpointStore.open(options).check(5.0)
    with pytest.raises(CheckpointError, match=r"a part of the path is a file; .* checkpoint\.root"):
        HdfsCheckpointStore.open(options).store(NAME, b"state")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"url": "namenode"}, "checkpoint.url"), ({"root": "a"}, "checkpoint.root"), ({"root": "/a/../b"}, "contains")],
)
def test_invalid_options_are_refused(change: dict[str, object], message: str) -> None:
    """The error names the key, before a connection is made."""
    with pytest.raises(ConfigError, match=message):
        HdfsCheckpointStore.open({"url": "http://n:1", **change})

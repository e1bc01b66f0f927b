"""Runs with state and packages in a real HDFS that stops and returns."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from counted_words import CountedWords
from flowing import flows
from heron.errors import StateError
from heron.spi.statemgr import NodeKind, Versioned
from heron_statemgr_hdfs.driver import HdfsStateManager
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_uploader_hdfs.driver import HdfsUploader

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PROFILE = """\
extends: local
statemgr: {{driver: hdfs, url: "{url}", root: {root}/state, user: heron}}
uploader: {{driver: hdfs, url: "{url}", root: {root}/packages, user: heron}}
"""
_HERE = ("--profile", "hdfs")


@dataclass
class Stored:
    """The content of HDFS, as another client sees it."""

    state: HdfsStateManager
    uploader: HdfsUploader

    def location(self, topology: str = "steady") -> Versioned | None:
        """Return the location of the topology manager; None also while HDFS does not answer."""
        try:
            return self.state.get(NodeKind.TMANAGER_LOCATION, topology)
        except StateError:
            return None

    def rest(self) -> list[str]:
        """Return all remaining files."""
        nodes = [f"{kind.value}/{name}" for kind in NodeKind for name in self.state.list(kind)]
        return nodes + [each.uri for each in self.uploader.packages()]


@pytest.fixture
def stored(sandbox: Sandbox, hdfs: HdfsServer) -> Iterator[Stored]:
    """A folder in HDFS, and the profile ``hdfs`` that names it."""
    root = f"/{secrets.token_hex(8)}"
    hdfs.make_folder(root, owner="heron")
    sandbox.write_profile("hdfs", _PROFILE.format(url=hdfs.url, root=root))
    options = {"url": hdfs.url, "user": "heron"}
    state = HdfsStateManager.open({**options, "root": f"{root}/state"})
    yield Stored(state, HdfsUploader.open({**options, "root": f"{root}/packages"}))
    state.close()


def test_words_are_counted_exactly_and_nothing_is_left_in_hdfs(sandbox: Sandbox, stored: Stored) -> None:
    """State and packages in HDFS change nothing else."""
    run = sandbox.run("acked_counting.py", *_HERE)
    run.finished()
    counts = [count for rows in run.results("count").values() for _, count in rows]
    assert sum(count for count in counts if isinstance(count, int)) == 100_000
    assert stored.rest() == []


def test_words_are_counted_exactly_while_hdfs_is_away(sandbox: Sandbox, hdfs: HdfsServer, stored: Stored) -> None:
    """HDFS is not on the path of tuples. `heron status` reports the outage and works again afterwards."""
    words = CountedWords(sandbox, sandbox.start("steady_words.py", *_HERE), _HERE)
    words.flows()
    before = words.processes()
    hdfs.kill()
    try:
        words.flows()
        assert f"{hdfs.url} cannot be reached" in words.status(code=1)
        words.flows()
    finally:
        hdfs.start()
    wait_until(lambda: stored.location("steady_words") is not None, 60, "HDFS answers")
    assert words.processes() == before, "a process was replaced"
    words.ends_exactly()
    assert stored.rest() == []


def test_a_killed_topology_manager_leads_again_after_its_lease(sandbox: Sandbox, stored: Stored) -> None:
    """HDFS does not report the death, so the lease expires after four seconds."""
    run = sandbox.start("steady.py", *_HERE)
    flows(run, "at the start")
    before = stored.location()
    assert before is not None

    def replaced() -> bool:
        present = stored.location()
        return present is not None and present.version > before.version

    run.the("tmanager").kill()
    flows(run, "without a topology manager")
    wait_until(replaced, 20.0, "the next topology manager leads")
    assert sandbox.status_document("steady", *_HERE)["status"]["state"] == "running"
    (run.out / "stop").touch()
    run.finished()
    assert stored.rest() == []


def test_a_killed_container_fetches_its_package_again(sandbox: Sandbox, stored: Stored) -> None:
    """The container fetches it from HDFS, on whatever machine it restarts."""
    run = sandbox.start("steady.py", *_HERE)
    flows(run, "at the start")
    assert [each.name for each in stored.uploader.packages()] == ["steady"]
    victim = run.the("executor", "1.json")
    victim.kill()
    run.until(lambda: run.processes("executor", "1.json") not in ([], [victim]), "the next executor")
    flows(run, "after the kill")
    (run.out / "stop").touch()
    run.finished()
    assert stored.rest() == []

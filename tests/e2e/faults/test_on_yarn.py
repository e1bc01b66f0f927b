"""Topologies on a YARN with two nodes: the demo, updates, and what YARN refuses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.yarn_services import YarnServices
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S
from yarn_place import STATUS_S, YarnPlace, fresh_place

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_LOOPS = 30


@pytest.fixture
def place(sandbox: Sandbox, hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[YarnPlace]:
    """All nodes, without a service."""
    with fresh_place(sandbox, hdfs, yarn_services) as place:
        yield place


def test_the_example_counts_exactly(place: YarnPlace, examples: Path) -> None:
    """The commands of the README: check, submit, status. The counts are those of the text."""
    assert "2 nodes" in place.sandbox.output_of("profiles", "check", "cluster")

    def runs(_submission: HeronRun) -> None:
        wait_until(lambda: place.commands.status("word_count"), BACK_S, "the topology has a status")

    status = place.commands.count_example(examples, _LOOPS, runs)
    assert "yarn app -status heron-word-count-" in status
    place.leaves_nothing()


def test_the_shipped_profile_counts_exactly(
    place: YarnPlace, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check yarn` asks all three servers."""
    place.use_servers(zookeeper, s3).count_example(examples, _LOOPS)
    place.leaves_nothing()


def test_containers_come_and_go_without_loss(place: YarnPlace) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""
    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    place.commands.update(steps, lambda: place.containers("updating"))
    place.leaves_nothing()


def test_what_yarn_refuses_is_told_in_its_words(place: YarnPlace) -> None:
    """The submission itself says it within ten seconds, and leaves nothing."""

    def refused(option: str, limit_s: float) -> str:
        run = place.sandbox.start("steady.py", "--set", f"scheduler.{option}", command="submit cluster")
        assert run.wait(limit_s) == 2, run.all_output
        return run.stderr

    refused("queue=nowhere", BACK_S)  # the first request loads the classes of the resource manager
    assert "unknown queue: nowhere" in refused("queue=nowhere", STATUS_S)
    assert "User root does not have permission to submit" in refused("queue=closed", STATUS_S)
    assert "larger than configured max container memory size" in refused("manager_memory_mb=20000", STATUS_S)
    place.leaves_nothing()


def test_the_status_tells_why_there_is_no_room(place: YarnPlace) -> None:
    """A node has room for one of these containers, or for the master. YARN knows it when the master has asked."""
    place.write_profile(Path(sys.executable), "executor_memory_mb: 12000", "manager_memory_mb: 4096")
    place.commands.submit("steady.py")
    wait_until(lambda: place.containers("steady") >= 1, BACK_S, "one container has a node")
    place.waits_for("Node does not have sufficient resource for request", "steady")
    assert "no machine of the cluster takes it now" in place.commands.output_of("explain", "steady", "--timeout", "10")
    place.commands.output_of("kill", "steady")
    place.leaves_nothing()


def test_the_status_tells_that_no_node_is_there(place: YarnPlace) -> None:
    """The service is accepted, and its master waits for a node."""
    for node in place.yarn.nodes.values():
        node.kill()
    wait_until(lambda: place.yarn.ready_nodes() == [], BACK_S, "all nodes are lost")
    place.commands.submit("steady.py")
    place.waits_for("cluster resource is empty", "steady")
    assert "no machine of the cluster takes it now" in place.commands.output_of("explain", "steady", "--timeout", "1")
    place.commands.output_of("kill", "steady")
    place.yarn.start()
    place.leaves_nothing()

"""On which nodes of a YARN the containers of a topology are, and what these nodes need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import LABEL, NODES, YarnServices
from on_cluster import BACK_S, ClusterJournal
from wheel_archive import bare_interpreter, write_wheel_archive
from yarn_place import YarnPlace, fresh_place

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def place(sandbox: Sandbox, hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[YarnPlace]:
    """All nodes, without a service."""
    with fresh_place(sandbox, hdfs, yarn_services) as place:
        yield place


def test_containers_run_on_the_nodes_with_the_label(place: YarnPlace) -> None:
    """`scheduler.node_label`: all containers are on the node that has it, wherever their master is."""
    place.yarn.label(NODES[1], LABEL)
    place.write_profile(Path(sys.executable), f"node_label: {LABEL}")
    run = place.commands.submit("steady.py")
    wait_until(lambda: len(run.processes("executor")) == 3, BACK_S, "all containers run")
    assert {place.node_of(each) for each in run.processes("executor")} == {NODES[1]}
    place.commands.output_of("kill", "steady")
    place.leaves_nothing()


def test_a_bare_interpreter_runs_a_topology_from_wheels(place: YarnPlace) -> None:
    """`scheduler.install: wheels`: the nodes have Python alone, and a killed container starts from the wheels again."""
    bare = bare_interpreter()
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-yarn"], place.sandbox.root / "wheels.zip")
    place.write_profile(bare, "install: wheels", f"wheels: {wheels}")
    journal = ClusterJournal(place.commands)
    journal.survives(journal.kill_launcher)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.let_go()


def test_a_standby_on_another_node_takes_over(place: YarnPlace) -> None:
    """`scheduler.spread`: YARN keeps topology managers apart. The machine of the leader is lost, and comes back."""
    place.write_profile(Path(sys.executable), "spread: true")
    journal = ClusterJournal(place.commands, "--set", "topology.tmanager.standbys=1")

    def nodes() -> dict[int, str]:
        return {each: place.node_of(journal.lines.run.the("executor", f"/c{each}.json")) for each in range(3)}

    journal.loses_leader(nodes, lambda node: place.lose(node, machine=True))
    place.yarn.start()
    wait_until(lambda: len(set(journal.managers())) == 2, BACK_S, "both run again")
    found = nodes()
    assert found[0] != found[1], found
    journal.let_go()
    place.leaves_nothing()

"""A topology on a YARN with two nodes, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import YarnServices
from on_cluster import BACK_S, ClusterJournal
from yarn_place import YarnPlace, fresh_place

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def place(sandbox: Sandbox, hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[YarnPlace]:
    """All nodes, without a service."""
    with fresh_place(sandbox, hdfs, yarn_services) as place:
        yield place


class YarnHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, place: YarnPlace, journal: ClusterJournal) -> None:
        self.place, self.yarn, self.journal = place, place.yarn, journal

    def kill_master(self) -> set[int]:
        """Kill the master of the service: YARN starts it again, and no container notices."""
        master = self._master()
        master.kill()
        wait_until(lambda: self.place.masters().keys() - {master}, BACK_S, "another master runs")
        return set()

    def lose_node(self) -> set[int]:
        """Kill a node manager: for YARN its machine is lost, while the old copies of its containers still run."""
        self.yarn.start()  # the node that was lost before
        nodes = [self.place.node_of(each) for each in self._executors()]
        lost = nodes[1]
        self.place.lose(lost)
        return {number for number, node in enumerate(nodes) if node == lost}

    def lose_manager(self) -> set[int]:
        """Kill the resource manager for half a minute: data flows on, and commands say it.

        No container notices. But when it is back, YARN 3.4.2 replaces containers that an earlier master has started
        (``Not waiting to recover container …, releasing``).
        """
        number = _attempt(self._master())
        older = {each for each, executor in enumerate(self._executors()) if _attempt(executor) != number}
        self.yarn.resource_manager.kill()
        self.journal.flows_on("the end of the resource manager")
        assert "does not answer" in self.place.told("journal")
        self.yarn.start()
        return older

    def _executors(self) -> list[psutil.Process]:
        return [self.journal.lines.run.the("executor", f"/c{each}.json") for each in range(3)]

    def _master(self) -> psutil.Process:
        """Return the master when it has all containers."""
        wait_until(lambda: self.place.containers("journal") == 3, BACK_S, "the master has all containers")
        (master,) = self.place.masters()
        return master


def _attempt(process: psutil.Process) -> int:
    """Return the number of the master that has started the container of a process."""
    return int(process.environ()["CONTAINER_ID"].split("_")[-2])


@pytest.mark.parametrize("names", [("kill_launcher", "kill_master"), ("lose_manager",), ("lose_node",)], ids="-".join)
def test_no_line_is_lost_whatever_yarn_does(place: YarnPlace, names: tuple[str, ...]) -> None:
    """At least once: only the containers that are moved restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(place.commands)
    harm = YarnHarm(place, journal)
    for name in names:
        journal.survives(getattr(journal if name == "kill_launcher" else harm, name))
    journal.let_go()
    place.leaves_nothing()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [84])
def test_no_line_is_lost_in_minutes_of_faults(place: YarnPlace, seed: int) -> None:
    """Processes, containers, masters, nodes and the resource manager are killed in any order."""
    journal = ClusterJournal(place.commands)
    harm = YarnHarm(place, journal)
    of_containers = (journal.kill_executor, journal.kill_launcher)
    journal.survives_minutes(seed, (*of_containers, harm.kill_master, harm.lose_manager, harm.lose_node))
    journal.let_go()
    place.leaves_nothing()

"""A topology by its name, while there is no topology manager to ask: what a command is told, and how soon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron.errors import StateError, UnreachableError, UsageError
from heron.ipc.keys import new_keys
from heron.ipc.status import TopologyStatus, encode_status
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron.state_nodes.topology_keys import encode_keys
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.remote_topology import RemoteTopology, UnreachableTopology

if TYPE_CHECKING:
    from conftest import IdleScheduler

SHORT_S = 0.3
LONG_S = 20.0  # nothing that is known at once takes so long


@dataclass
class World:
    """The state of a topology ``words``, and commands about it."""

    state: StateManager
    scheduler: IdleScheduler

    def submit(self, topology_id: str = "words-1") -> None:
        """Writes what a submission writes, and runs its job."""
        run = ExecutionState("words", topology_id, 1.0, "me", "here", "here", "file:x", "/run", "/log", attached=False)
        self.state.set(NodeKind.EXECUTION_STATE, "words", encode_execution_state(run))
        self.state.set(NodeKind.KEYS, "words", encode_keys(new_keys()))
        self.scheduler.state = SchedulerState.RUNNING

    def report(self, state: str, topology_id: str = "words-1", error: str = "") -> None:
        """What a topology manager writes at the end."""
        status = TopologyStatus("words", topology_id, state, 1.0, error=error)
        self.state.set(NodeKind.REPORT, "words", encode_status(status))

    def ask(self, timeout_s: float = LONG_S, name: str = "words") -> str:
        """The error of a question."""
        began_s = monotonic_s()
        with (
            RemoteTopology(self.state, self.scheduler, name, timeout_s) as topology,
            pytest.raises((UsageError, UnreachableError, StateError)) as caught,
        ):
            topology.status()
        assert monotonic_s() - began_s < max(timeout_s / 2, 5.0)
        return f"{type(caught.value).__name__}: {caught.value}"


@pytest.fixture
def world(environment: Environment, scheduler: IdleScheduler) -> Iterator[World]:
    yield World(environment.statemgr, scheduler)
    environment.statemgr.close()


def test_a_name_that_nobody_has_names_the_nearest(world: World) -> None:
    """Most often it is a typo."""
    assert world.ask(name="wrods") == "UsageError: topology 'wrods' is not running; running: none"
    world.submit()
    assert world.ask(name="wrods") == "UsageError: topology 'wrods' is not running (nearest: 'words'); running: 'words'"


@pytest.mark.parametrize("name", ["", "a/b", "../words", "wörter", "a" * 201, "a b"])
def test_a_name_that_cannot_be_one_never_reaches_the_store(world: World, name: str) -> None:
    """It might leave the store's folder."""
    assert "is not a topology name: use 1 to 200 of the characters" in world.ask(name=name)


def test_a_topology_that_has_ended_says_how(world: World) -> None:
    """Its last report is kept for a while."""
    world.report("failed", error="no prices")
    assert world.ask() == ("UsageError: topology 'words' is not running; its last run, words-1, failed: no prices")


def test_one_that_is_starting_is_waited_for(world: World) -> None:
    """Its topology manager comes any moment, unless it does not."""
    world.submit()
    assert world.ask(SHORT_S) == (
        "UnreachableError: topology 'words': it is starting, its topology manager is not there yet; "
        "given up after 0.3 s, try again"
    )
    world.scheduler.reason, world.scheduler.attempts = "the package is gone", 4
    assert "not there yet; container 1 does not run, after 4 starts: the package is gone; given" in world.ask(SHORT_S)


def test_one_whose_topology_manager_is_away_is_waited_for(world: World) -> None:
    """Nobody need worry about the data."""
    world.submit()
    world.state.set(NodeKind.PHYSICAL_PLAN, "words", b"{}")
    assert "its topology manager is being restarted; data flows on" in world.ask(SHORT_S)
    former = TManagerLocation("tcp://127.0.0.1:1", "words-0", 1, "here")
    hold = world.state.hold(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(former))
    assert "its topology manager is being restarted; data flows on" in world.ask(SHORT_S)
    hold.release()
    killed = TManagerLocation("tcp://127.0.0.1:1", "words-1", 1, "here")
    hold = world.state.hold(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(killed))
    assert "at tcp://127.0.0.1:1 did not answer: no process listens there" in world.ask(SHORT_S)
    hold.release()


def test_one_whose_processes_are_gone_is_not_waited_for(world: World) -> None:
    """Whoever was to tidy up was killed; the next step is named."""
    world.submit()
    world.scheduler.state = SchedulerState.FAILED
    assert (
        "its processes are gone and did not clean up; `heron kill words --profile here` removes what they left"
        in world.ask()
    )
    world.report("finished")
    assert world.ask() == "UsageError: topology 'words' is not running; its last run, words-1, finished"


def test_one_that_has_reported_its_end_is_not_being_restarted(world: World) -> None:
    """Its topology manager left by itself; a command that holds the lock asks too, and the job may still be leaving."""
    world.submit()
    world.state.set(NodeKind.PHYSICAL_PLAN, "words", b"{}")
    world.report("killed")
    hold = world.state.hold(NodeKind.LOCK, "words", b"")
    with RemoteTopology(world.state, world.scheduler, "words", LONG_S) as topology:
        assert not topology.over()
    assert world.ask() == "UsageError: topology 'words' is not running; its last run, words-1, was killed"
    hold.release()


def test_one_that_a_command_is_at_work_on_is_waited_for(world: World) -> None:
    """A submission writes the state before it starts the job."""
    world.submit()
    world.scheduler.state = SchedulerState.ABSENT
    hold = world.state.hold(NodeKind.LOCK, "words", b"")
    assert "it is starting" in world.ask(SHORT_S)
    hold.release()


def test_a_question_is_about_one_run(world: World) -> None:
    """Another run that takes the name meanwhile is not mistaken for it."""
    world.submit()
    with RemoteTopology(world.state, world.scheduler, "words", LONG_S) as topology:
        assert topology.run.topology_id == "words-1"
        world.submit("words-2")
        with pytest.raises(UsageError, match="topology 'words' is not running"):
            topology.status()
        assert topology.over()


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (NodeKind.EXECUTION_STATE, "execution state of topology 'words' cannot be read"),
        (NodeKind.TMANAGER_LOCATION, "node tmanagers/words: the location of the topology manager"),
        (NodeKind.KEYS, "the keys of topology 'words' cannot be read"),
    ],
)
def test_a_node_that_was_changed_by_hand_is_named(world: World, kind: NodeKind, what: str) -> None:
    """At once: waiting does not mend it."""
    world.submit()
    location = TManagerLocation("tcp://127.0.0.1:1", "words-1", 1, "here")
    world.state.set(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(location))
    world.state.set(kind, "words", b'{"half": ')
    assert what in world.ask()


def test_a_report_that_was_changed_by_hand_is_named(world: World) -> None:
    """Rather than that there is none."""
    world.state.set(NodeKind.REPORT, "words", b"[]")
    assert "node reports/words: the last report of topology 'words' cannot be read" in world.ask()


def test_what_the_traces_of_a_topology_mean() -> None:
    """Dead only where the scheduler says so and nobody is at work."""
    running, absent = SchedulerState.RUNNING, SchedulerState.ABSENT
    assert [
        UnreachableTopology(True, locked, job).dead() for locked in (False, True) for job in (running, absent, None)
    ] == [
        *(False, True, False),
        *(False, False, False),
    ]

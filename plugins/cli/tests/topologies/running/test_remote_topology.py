"""Requests to a topology whose topology manager does not answer: the errors, and the time until each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from heron.clock import monotonic_s
from heron.errors import StateError, UnreachableError, UsageError
from heron.ipc.documents.status import TopologyStatus, encode_status
from heron.ipc.keys import new_keys
from heron.spi.scheduler import ContainerStatus, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron.state_nodes.topology_keys import encode_keys
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.running import remote_topology
from heron_cli.topologies.running.remote_topology import RemoteTopology, UnreachableTopology
from heron_cli.topologies.running.status_report import status_report

if TYPE_CHECKING:
    from conftest import IdleScheduler
    from heron.ipc.query import TManagerClient

SHORT_S = 0.3
LONG_S = 20.0  # an error that needs no wait comes much earlier


@dataclass
class Scenario:
    """Writes the state of a topology ``words``, and sends requests to it."""

    state: StateManager
    scheduler: IdleScheduler

    def submit(self, topology_id: str = "words-1") -> None:
        """Write the nodes of a submission, and start its job."""
        run = ExecutionState("words", topology_id, 1.0, "me", "here", "here", "file:x", "/run", "/log", attached=False)
        self.state.set(NodeKind.EXECUTION_STATE, "words", encode_execution_state(run))
        self.state.set(NodeKind.KEYS, "words", encode_keys(new_keys()))
        self.scheduler.state = SchedulerState.RUNNING

    def report(self, state: str, topology_id: str = "words-1", error: str = "") -> None:
        """Write the report that a topology manager writes at the end."""
        status = TopologyStatus("words", topology_id, state, 1.0, error=error)
        self.state.set(NodeKind.REPORT, "words", encode_status(status))

    def lead(self, endpoint: str, server_key: str = "") -> None:
        """Write where the topology manager is."""
        location = encode_tmanager_location(TManagerLocation(endpoint, "words-1", 1, "here", server_key=server_key))
        self.state.set(NodeKind.TMANAGER_LOCATION, "words", location)

    def ask(self, timeout_s: float = LONG_S, name: str = "words") -> str:
        """Return the error of a request."""
        began_s = monotonic_s()
        with (
            RemoteTopology(self.state, self.scheduler, name, timeout_s) as topology,
            pytest.raises((UsageError, UnreachableError, StateError)) as caught,
        ):
            topology.status()
        assert monotonic_s() - began_s < max(timeout_s / 2, 5.0)
        return f"{type(caught.value).__name__}: {caught.value}"


@pytest.fixture
def scenario(environment: Environment, scheduler: IdleScheduler) -> Iterator[Scenario]:
    yield Scenario(environment.statemgr, scheduler)
    environment.statemgr.close()


def test_the_error_for_an_unknown_name_has_the_nearest(scenario: Scenario) -> None:
    """The usual cause is a typing error."""
    assert scenario.ask(name="wrods") == "UsageError: topology 'wrods' is not running; running: none"
    scenario.submit()
    assert (
        scenario.ask(name="wrods") == "UsageError: topology 'wrods' is not running (nearest: 'words'); running: 'words'"
    )


@pytest.mark.parametrize("name", ["", "a/b", "../words", "wörter", "a" * 201, "a b"])
def test_an_invalid_name_does_not_reach_the_state_manager(scenario: Scenario, name: str) -> None:
    """It might be a path outside the folder of the state manager."""
    assert "is not a topology name: use 1 to 200 of the characters" in scenario.ask(name=name)


def test_the_error_for_an_ended_topology_has_its_last_state(scenario: Scenario) -> None:
    """The last report is kept for a day."""
    scenario.report("failed", error="no prices")
    assert scenario.ask() == ("UsageError: topology 'words' is not running; its last run, words-1, failed: no prices")


def test_a_request_waits_for_a_starting_topology(scenario: Scenario) -> None:
    """Its topology manager is expected to start; the error after the time limit has the reason."""
    scenario.submit()
    assert scenario.ask(SHORT_S) == (
        "UnreachableError: topology 'words': it is starting, its topology manager is not there yet; "
        "given up after 0.3 s, try again"
    )
    scenario.scheduler.reason, scenario.scheduler.attempts = "the package is gone", 4
    assert "not there yet; container 1 does not run, after 4 starts: the package is gone; given" in scenario.ask(
        SHORT_S
    )


@pytest.mark.parametrize(("running", "data"), [(True, "data flows on"), (False, "no container with tasks runs")])
def test_the_reason_says_whether_data_flows(running: bool, data: str) -> None:
    """Without its topology manager a topology works on, if its containers run."""
    containers = (ContainerStatus(0, False, 1, "no node"), ContainerStatus(1, running, 2))
    reason = UnreachableTopology(True, False, SchedulerState.RUNNING, containers).reason()
    assert reason == (
        f"its topology manager is being restarted; {data}; container 0 does not run, after 1 start: no node"
    )


def test_a_status_waits_seconds_for_a_container_0_that_cannot_start(scenario: Scenario) -> None:
    """An image that is missing is not there after ten seconds either; other commands wait for one that comes late."""
    scenario.submit()
    scheduler = scenario.scheduler
    scheduler.reason, scheduler.attempts, scheduler.container_id = "no such image", 0, 0
    began_s = monotonic_s()
    with RemoteTopology(scenario.state, scheduler, "words", LONG_S) as topology:
        with pytest.raises(UnreachableError, match=r"container 0 .* 0 starts: no such image; given up after 2 s"):
            status_report(scenario.state, scheduler, topology)
        assert monotonic_s() - began_s < LONG_S / 2
        topology.timeout_s = 2.5
        with pytest.raises(UnreachableError, match=r"given up after 2\.5 s"):
            topology.change_state("paused")


def test_the_error_has_why_the_scheduler_gives_no_answer(scenario: Scenario) -> None:
    """While no topology manager answers, only the scheduler can say why."""
    scenario.submit()
    scenario.scheduler.status_refusal = "forbidden (403); grant the Role"
    assert "not there yet; the state of its job is unknown: forbidden (403); grant the Role; given up" in scenario.ask(
        SHORT_S
    )


def test_a_request_waits_for_a_restarting_topology_manager(scenario: Scenario) -> None:
    """The error says that data flows on."""
    scenario.submit()
    scenario.state.set(NodeKind.PHYSICAL_PLAN, "words", b"{}")
    assert "its topology manager is being restarted; data flows on" in scenario.ask(SHORT_S)
    former = TManagerLocation("tcp://127.0.0.1:1", "words-0", 1, "here")
    hold = scenario.state.hold(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(former))
    assert "its topology manager is being restarted; data flows on" in scenario.ask(SHORT_S)
    hold.release()
    killed = TManagerLocation("tcp://127.0.0.1:1", "words-1", 1, "here")
    hold = scenario.state.hold(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(killed))
    assert "at tcp://127.0.0.1:1 did not answer: no process listens there" in scenario.ask(SHORT_S)
    hold.release()


def test_a_request_does_not_wait_for_a_dead_topology(scenario: Scenario) -> None:
    """The error names the command that removes the remains."""
    scenario.submit()
    scenario.scheduler.state = SchedulerState.FAILED
    assert (
        "its processes are gone and did not clean up; `heron kill words --profile here` removes what they left"
        in scenario.ask()
    )
    scenario.report("finished")
    assert scenario.ask() == "UsageError: topology 'words' is not running; its last run, words-1, finished"


def test_a_topology_with_a_last_report_has_ended(scenario: Scenario) -> None:
    """The job may still run, and a command may hold the lock."""
    scenario.submit()
    scenario.state.set(NodeKind.PHYSICAL_PLAN, "words", b"{}")
    scenario.report("killed")
    hold = scenario.state.hold(NodeKind.LOCK, "words", b"")
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S) as topology:
        assert not topology.over()
    assert scenario.ask() == "UsageError: topology 'words' is not running; its last run, words-1, was killed"
    hold.release()


def test_a_request_waits_for_another_command(scenario: Scenario) -> None:
    """A submission writes the state before it starts the job."""
    scenario.submit()
    scenario.scheduler.state = SchedulerState.ABSENT
    hold = scenario.state.hold(NodeKind.LOCK, "words", b"")
    assert "it is starting" in scenario.ask(SHORT_S)
    hold.release()


def test_a_connection_is_to_one_run(scenario: Scenario) -> None:
    """A new run of the same name does not answer."""
    scenario.submit()
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S) as topology:
        assert topology.run.topology_id == "words-1"
        scenario.submit("words-2")
        with pytest.raises(UsageError, match="topology 'words' is not running"):
            topology.status()
        assert topology.over()


class Connections:
    """Opens connections to topology managers, which answer; the next question on one fails after `lose`."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self._lost = False
        self.losses: list[float] = []
        self.left_s: list[float] = []
        self.now_s = [0.0]

    def open(self, endpoint: str) -> TManagerClient:
        """Connect."""
        self.opened.append(endpoint)
        return cast("TManagerClient", self)

    def lose(self) -> None:
        """End the connection."""
        self._lost = True

    def status(self, _timeout_s: float) -> TopologyStatus:
        """Answer, or fail once."""
        if self._lost:
            self._lost = False
            msg = "the connection has ended"
            raise UnreachableError(msg)
        return TopologyStatus("words", "words-1", "running", 1.0)

    def stacks(self, _component: str, _task_id: int, timeout_s: float) -> str:
        """Fail after the next of `losses`, in seconds."""
        self.left_s.append(timeout_s)
        self.now_s[0] += self.losses.pop(0)
        msg = "the connection has ended"
        raise UnreachableError(msg)

    def change_state(self, _state: str, _timeout_s: float) -> None:
        """Answer."""

    def close(self) -> None:
        """Close."""


def test_a_topology_manager_that_answers_is_looked_up_rarely(scenario: Scenario) -> None:
    """A look-up costs half of a question. After a failure, and before a change, another one may lead."""
    scenario.submit()
    connections = Connections()
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S, client_of=connections.open) as topology:
        scenario.lead("tcp://first")
        topology.status()
        scenario.lead("tcp://second")
        topology.status()
        assert connections.opened == ["tcp://first"]
        connections.lose()
        topology.status()
        assert connections.opened == ["tcp://first", "tcp://second"]
        scenario.lead("tcp://third")
        topology.change_state("paused")
        assert connections.opened == ["tcp://first", "tcp://second", "tcp://third"]


def test_a_report_has_why_the_scheduler_gives_no_answer(scenario: Scenario) -> None:
    """The topology manager answers, so there is a status; its containers have no places."""
    scenario.submit()
    scenario.lead("tcp://first")
    scenario.scheduler.status_refusal = "forbidden (403); grant the Role"
    client_of = Connections().open
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S, client_of=client_of) as topology:
        report = status_report(scenario.state, scenario.scheduler, topology)
    assert (report.job, report.scheduler_error) == (None, "forbidden (403); grant the Role")


def test_a_topology_manager_with_new_keys_at_the_same_endpoint_is_connected_again(scenario: Scenario) -> None:
    """Its port may be fixed, and a connection with the former keys gets no answer."""
    scenario.submit()
    connections = Connections()
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S, client_of=connections.open) as topology:
        for server_key in ("former", "new", "new"):
            scenario.lead("tcp://fixed", server_key)
            topology.change_state("paused")
    assert connections.opened == ["tcp://fixed", "tcp://fixed"]


def test_a_former_leader_answers_for_five_seconds(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may answer for longer when it cannot reach the state manager; then nobody asks it any more."""
    now_s = [100.0]
    monkeypatch.setattr(remote_topology, "monotonic_s", lambda: now_s[0])
    scenario.submit()
    connections = Connections()
    with RemoteTopology(scenario.state, scenario.scheduler, "words", LONG_S, client_of=connections.open) as topology:
        scenario.lead("tcp://former")
        topology.status()
        scenario.lead("tcp://present")
        now_s[0] += 4.9
        topology.status()
        assert connections.opened == ["tcp://former"]
        now_s[0] += 0.1
        topology.status()
        assert connections.opened == ["tcp://former", "tcp://present"]


def test_a_question_to_a_task_has_one_deadline_however_often_it_is_asked(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topology manager may end while a task is asked; a command with 5 s took twice as long then."""
    now_s = [100.0]
    monkeypatch.setattr(remote_topology, "monotonic_s", lambda: now_s[0])
    scenario.submit()
    scenario.lead("tcp://one")
    connections = Connections()
    with RemoteTopology(scenario.state, scenario.scheduler, "words", 5.0, client_of=connections.open) as topology:
        connections.losses = [4.0, 1.0]
        connections.now_s = now_s
        with pytest.raises(UnreachableError, match="given up after 5 s"):
            topology.stacks(3)
    assert [round(each, 1) for each in connections.left_s] == [5.0, 1.0]
    assert now_s[0] <= 105.1


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (NodeKind.EXECUTION_STATE, "execution state of topology 'words' cannot be read"),
        (NodeKind.TMANAGER_LOCATION, "node tmanagers/words: the location of the topology manager"),
        (NodeKind.KEYS, "the keys of topology 'words' cannot be read"),
    ],
)
def test_a_node_that_was_changed_by_hand_is_named(scenario: Scenario, kind: NodeKind, what: str) -> None:
    """The error comes at once, because waiting cannot remedy it."""
    scenario.submit()
    location = TManagerLocation("tcp://127.0.0.1:1", "words-1", 1, "here")
    scenario.state.set(NodeKind.TMANAGER_LOCATION, "words", encode_tmanager_location(location))
    scenario.state.set(kind, "words", b'{"half": ')
    assert what in scenario.ask()


def test_a_report_that_was_changed_by_hand_is_named(scenario: Scenario) -> None:
    """The error is not that the report is missing."""
    scenario.state.set(NodeKind.REPORT, "words", b"[]")
    assert "node reports/words: the last report of topology 'words' cannot be read" in scenario.ask()


def test_the_state_of_an_unreachable_topology() -> None:
    """It is dead only when the scheduler reports no job and no command holds the lock."""
    running, absent = SchedulerState.RUNNING, SchedulerState.ABSENT
    assert [
        UnreachableTopology(True, locked, job).dead() for locked in (False, True) for job in (running, absent, None)
    ] == [
        *(False, True, False),
        *(False, False, False),
    ]

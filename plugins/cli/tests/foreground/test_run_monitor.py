"""Following a run: the outcome of each way to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron.ipc.documents.status import ComponentStatus, TaskStatus, TopologyStatus, encode_status
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron_cli.foreground import run_monitor
from heron_cli.foreground.run_monitor import Outputs, RunMonitor, StatusPoller
from heron_cli.interrupts import Interrupts
from heron_cli.topologies.environment import Environment
from heron_cli.view.live.run_view import GuardedView

if TYPE_CHECKING:
    from conftest import IdleScheduler

RUN = ExecutionState("Words", "Words-1", 0.0, "me", "here", "here", "", "", "", attached=True)


class Screen:
    """A view that records its calls."""

    def __init__(self) -> None:
        self.shown: list[TopologyStatus] = []
        self.printed: list[str] = []
        self.notes: list[str] = []

    def show(self, status: TopologyStatus) -> None:
        """Record the call."""
        self.shown.append(status)

    def lines(self, texts: Sequence[str]) -> None:
        """Record the call."""
        self.printed += texts

    def note(self, text: str) -> None:
        """Record the call."""
        self.notes.append(text)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def screen() -> Screen:
    """Return the view."""
    return Screen()


@pytest.fixture
def monitor(environment: Environment, scheduler: IdleScheduler, screen: Screen, tmp_path: Path) -> Iterator[RunMonitor]:
    """Return a monitor of a run whose job exists and does nothing."""
    scheduler.state = SchedulerState.RUNNING
    (tmp_path / "out").mkdir()
    with closing(Outputs(tmp_path / "out", {"count": 1})) as outputs:
        yield RunMonitor(environment, RUN, GuardedView(screen), outputs)


def report(environment: Environment, state: str, error: str = "", topology_id: str = "Words-1") -> None:
    """Write the report that a topology manager writes at its end."""
    status = TopologyStatus(
        "Words",
        topology_id,
        state,
        0.0,
        error=error,
        components=(ComponentStatus("count", "bolt", 1, executed=7),),
        tasks=(TaskStatus(2, "count", 1, "down", 1, last_error="it broke"),),
        errors=("first", "first"),
    )
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_status(status))


def test_a_finished_topology_is_finished(
    environment: Environment, scheduler: IdleScheduler, screen: Screen, monitor: RunMonitor, tmp_path: Path
) -> None:
    """The outcome has the counts, and the last output of the tasks is shown."""
    report(environment, "finished")
    scheduler.state = SchedulerState.RUNNING
    (tmp_path / "out" / "count-2.out").write_text("last word", encoding="utf-8")
    with Interrupts() as interrupts:
        scheduler.state = SchedulerState.ENDED
        outcome = monitor.wait_for_end(interrupts, None)
    assert (outcome.state, outcome.interrupted) == ("finished", False)
    assert outcome.status
    assert outcome.status.components[0].executed == 7
    assert screen.printed == ["last word"]
    assert screen.notes == ["heron: error: first", "heron: error: count/2: it broke"]


def test_a_failure_keeps_its_reason(environment: Environment, scheduler: IdleScheduler, monitor: RunMonitor) -> None:
    """The reason is in the report of the topology manager."""
    report(environment, "failed", "count/2 cannot be constructed")
    scheduler.state = SchedulerState.ENDED
    with Interrupts() as interrupts:
        outcome = monitor.wait_for_end(interrupts, None)
    assert (outcome.state, outcome.reason) == ("failed", "count/2 cannot be constructed")


def test_a_job_that_ends_without_a_report_has_failed(scheduler: IdleScheduler, monitor: RunMonitor) -> None:
    """Only the scheduler has reasons."""
    scheduler.state, scheduler.reason = SchedulerState.FAILED, "exit code 1: no package"
    with Interrupts() as interrupts:
        outcome = monitor.wait_for_end(interrupts, None)
    assert (outcome.state, outcome.reason) == ("failed", "container 1: exit code 1: no package")


def test_a_container_that_never_begins_fails_the_run(
    scheduler: IdleScheduler, screen: Screen, monitor: RunMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler would start it forever; its reason is shown once."""
    monkeypatch.setattr(run_monitor, "_LEAVE_S", 0.1)  # its processes do not leave
    scheduler.reason, scheduler.attempts = "exit code 1: no space", 5
    with Interrupts() as interrupts:
        outcome = monitor.wait_for_end(interrupts, monotonic_s() + 30.0)
    assert outcome.state == "failed"
    assert outcome.reason == "container 1: exit code 1: no space; given up after 5 attempts"
    assert screen.notes[0] == "heron: error: container 1: exit code 1: no space"
    assert len(screen.notes) == 2


def test_a_restarted_container_is_not_a_failure(
    scheduler: IdleScheduler, screen: Screen, monitor: RunMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason of the restart is shown."""
    scheduler.reason, scheduler.attempts = "killed by SIGKILL", 2
    with Interrupts() as interrupts:
        outcome = monitor.wait_for_end(interrupts, monotonic_s())
    assert outcome.reason == "its --timeout is up"
    scheduler.state = SchedulerState.RUNNING

    def note(text: str) -> None:
        screen.notes.append(text)
        os.kill(os.getpid(), signal.SIGINT)  # ends the test

    monkeypatch.setattr(screen, "note", note)
    with Interrupts() as interrupts:
        assert monitor.wait_for_end(interrupts, monotonic_s() + 30.0).state == "killed"
    assert screen.notes == ["heron: error: container 1: killed by SIGKILL"]


def test_the_report_of_another_run_does_not_count(
    environment: Environment, scheduler: IdleScheduler, monitor: RunMonitor
) -> None:
    """Names are used again, ids are not."""
    report(environment, "finished", topology_id="Words-0")
    scheduler.state = SchedulerState.ENDED
    with Interrupts() as interrupts:
        assert monitor.wait_for_end(interrupts, None).state == "failed"


def test_a_topology_manager_with_new_keys_at_the_same_endpoint_is_connected_again(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port may be fixed, and a connection with the former keys gets no answer."""
    opened: list[str] = []

    class Answering:
        def status(self, _timeout_s: float) -> TopologyStatus:
            return TopologyStatus("Words", "Words-1", "running", 0.0)

        def close(self) -> None:
            pass

    def open_client(*_: object, server_key: str, **__: object) -> Answering:
        opened.append(server_key)
        return Answering()

    monkeypatch.setattr(run_monitor, "open_tmanager_client", open_client)
    environment.statemgr.set(NodeKind.KEYS, "Words", b"keys")
    poller = StatusPoller(environment.statemgr, RUN)
    for server_key in ("former", "new", "new"):
        location = TManagerLocation("tcp://fixed", "Words-1", 1, "here", server_key=server_key)
        environment.statemgr.set(NodeKind.TMANAGER_LOCATION, "Words", encode_tmanager_location(location))
        assert poller.poll() is not None
    assert opened == ["former", "new"]


def test_a_timeout_kills_the_job(scheduler: IdleScheduler, monitor: RunMonitor) -> None:
    """The time begins with the command."""
    with Interrupts() as interrupts:
        outcome = monitor.wait_for_end(interrupts, monotonic_s() - 1.0)
    assert (outcome.state, outcome.interrupted) == ("killed", False)
    assert scheduler.killed == ["Words"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_kill_the_job_once(scheduler: IdleScheduler, monitor: RunMonitor, sent: signal.Signals) -> None:
    """Repeated signals have no further effect."""
    with Interrupts() as interrupts:
        os.kill(os.getpid(), sent)
        os.kill(os.getpid(), sent)
        outcome = monitor.wait_for_end(interrupts, None)
    assert (outcome.state, outcome.interrupted) == ("killed", True)
    assert scheduler.killed == ["Words"]

"""The state of a topology follows from the facts, and only a run that is certainly over is cleaned up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.ipc.documents.status import TopologyStatus
from heron.planner.physical_plan import TopologyState
from heron.spi.scheduler import SchedulerState
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.report import LastReport
from heron_cli.topologies.runs import discovery
from heron_cli.topologies.runs.discovery import Facts, RunState, classify, is_over

RUN = ExecutionState("Words", "Words-1", 1.0, "me", "here", "local", "", "", "", attached=False)
ALIVE = SchedulerState.RUNNING
FINISHED = LastReport(TopologyStatus("Words", "Words-1", "finished", 1.0))
FORMER = LastReport(TopologyStatus("Words", "Words-0", "failed", 1.0))
STRANGE = LastReport(TopologyStatus("Words", "Words-1", "melted", 1.0))


@pytest.mark.parametrize(
    ("facts", "state", "over"),
    [
        (Facts("Words"), None, False),
        (Facts("Words", report=FINISHED), RunState.FINISHED, False),
        (Facts("Words", report=STRANGE), RunState.GARBLED, False),
        (Facts("Words", locked=True), RunState.CHANGING, False),
        (Facts("Words", error="node x"), RunState.GARBLED, False),
        (Facts("Words", RUN, locked=True), RunState.CHANGING, False),
        (Facts("Words", RUN, job=ALIVE), RunState.STARTING, False),
        (Facts("Words", RUN, job=ALIVE, plan=TopologyState.RUNNING), RunState.RUNNING, False),
        (Facts("Words", RUN, job=ALIVE, plan=TopologyState.PAUSED), RunState.PAUSED, False),
        (Facts("Words", RUN, FORMER, job=ALIVE), RunState.STARTING, False),
        (Facts("Words", RUN, led=True, plan=TopologyState.RUNNING), RunState.RUNNING, False),
        (Facts("Words", RUN, led=True, ours=False, plan=TopologyState.RUNNING), RunState.RUNNING, False),
        (Facts("Words", RUN, ours=False), RunState.ELSEWHERE, False),
        (Facts("Words", RUN, FINISHED, job=ALIVE), RunState.FINISHED, False),
        (Facts("Words", RUN, FINISHED, job=SchedulerState.ENDED), RunState.FINISHED, True),
        (Facts("Words", RUN), RunState.LOST, True),
        (Facts("Words", RUN, job=SchedulerState.FAILED), RunState.LOST, True),
        (Facts("Words", RUN, error="node x"), RunState.LOST, False),
    ],
)
def test_the_state_follows_from_the_facts(facts: Facts, state: RunState | None, over: bool) -> None:
    """Each row is a phase in the life of a topology, or a fault."""
    assert classify(facts) is state
    assert is_over(facts) is over


def test_a_run_of_another_host_is_never_lost() -> None:
    """The scheduler of this host has no information about it."""
    assert not is_over(replace(Facts("Words", RUN), ours=False))


@pytest.mark.parametrize(("length", "decoded"), [(20_000, 1), (20_001, 2)])
def test_what_a_plan_says_is_kept_unless_it_is_large(length: int, decoded: int) -> None:
    """A service lists topologies for weeks, and their plans rarely change."""
    asked = []

    def decode(value: bytes, topology: str) -> int:
        asked.append(topology)
        return len(value)

    value = bytes(length)
    assert [discovery._decode_once(decode, bytes(bytearray(value)), "Words") for _ in range(2)] == [length] * 2
    assert len(asked) == decoded
    assert discovery._decode_once(decode, value, "Counts") == length
    assert asked[-1] == "Counts", "errors name the topology"

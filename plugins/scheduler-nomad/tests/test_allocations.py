"""What Nomad says of allocations and placements, in the words that its own tools show."""

from __future__ import annotations

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_nomad.allocations import is_left, newest, observation, placement_failure


def _allocation(index: int, client: str, task: str, *events: tuple[str, str], group: str = "container-1") -> Json:
    told = [{"Type": kind, "DisplayMessage": text} for kind, text in events]
    states = {"heron": {"State": task, "Events": told}} if task else None
    return {
        "ID": f"a{index}",
        "CreateIndex": index,
        "TaskGroup": group,
        "NodeName": f"node-{index}",
        "ClientStatus": client,
        "TaskStates": states,
    }


def test_a_running_task_is_up_where_its_client_is() -> None:
    """The place of a container in `heron status` is the name of the client."""
    seen = observation("container-1", [_allocation(1, "running", "running", ("Started", "Task started by client"))])
    assert seen == Observation(True, "node-1", "", "node-1")


def test_the_last_allocation_says_why() -> None:
    """An older allocation of the group failed for another reason."""
    old = _allocation(3, "failed", "dead", ("Terminated", "Exit Code: 1"))
    new = _allocation(9, "pending", "pending", ("Driver Failure", "failed to launch: no such file"), ("Restarting", ""))
    assert newest([new, old])["container-1"] is new
    assert observation("container-1", [new, old]) == Observation(
        False, "node-9", "Driver Failure: failed to launch: no such file", "node-9"
    )


def test_an_allocation_that_is_being_stopped_is_up_beside_its_successor() -> None:
    """A drained client still runs the launcher; two copies must not look like none."""
    seen = observation("container-1", [_allocation(1, "running", "running"), _allocation(2, "pending", "pending")])
    assert seen.up
    assert seen.where == "node-2"


def test_a_lost_client_is_named_by_nomad() -> None:
    """The task states of a lost client are those that it last sent."""
    lost = {**_allocation(1, "lost", "running"), "DesiredDescription": "alloc is lost since its node is down"}
    assert observation("container-1", [lost]) == Observation(
        False, "node-1", "alloc is lost since its node is down", "node-1"
    )
    assert not is_left(lost)


def test_a_placement_failure_has_the_words_of_nomad() -> None:
    """The newest evaluation counts; each cause is one clause."""
    old: Json = {"CreateIndex": 3, "FailedTGAllocs": {"container-1": {"NodesEvaluated": 0}}}
    metrics: Json = {
        "NodesEvaluated": 3,
        "NodesAvailable": {"dc1": 3, "dc2": 0},
        "ConstraintFiltered": {"missing drivers": 2},
        "DimensionExhausted": {"memory": 1},
        "QuotaExhausted": ["cpu"],
    }
    new: Json = {"CreateIndex": 12, "FailedTGAllocs": {"container-1": metrics}}
    later: Json = {"CreateIndex": 13, "FailedTGAllocs": None}
    assert placement_failure([new, later, old], "container-1") == (
        'No nodes are available in datacenter "dc2"; Constraint "missing drivers": 2 nodes excluded by filter; '
        'Dimension "memory" exhausted on 1 nodes; Quota limit hit "cpu"'
    )
    assert placement_failure([old], "container-1") == "No nodes were eligible for evaluation"
    assert placement_failure([new], "container-2") == ""

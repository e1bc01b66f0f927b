"""What Aurora says of tasks and job updates, as reasons for people and decisions about locks."""

from __future__ import annotations

import pytest

from heron_scheduler_aurora.aurora_words import TaskStatus, UpdateStatus
from heron_scheduler_aurora.task_states import active, is_updating, observations, update_name, updates_words
from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json


def _task(number: int, status: TaskStatus, at_ms: int = 1, message: str = "", host: str = "h1") -> Json:
    event: Json = {"timestamp": at_ms, "status": int(status), **({"message": message} if message else {})}
    assigned = {"taskId": f"task-{number}-{at_ms}", "slaveHost": host, "instanceId": number}
    return {"assignedTask": assigned, "status": int(status), "taskEvents": [event]}


def _update(status: UpdateStatus, at_ms: int = 1) -> Json:
    key = {"job": {}, "id": f"u{at_ms}"}
    return {"key": key, "user": "ann", "state": {"status": int(status), "createdTimestampMs": at_ms}}


def test_a_running_task_is_up_with_the_reason_of_its_last_end() -> None:
    """Aurora keeps the former tasks of an instance for a while."""
    tasks = [
        _task(1, TaskStatus.FAILED, 1, "Memory limit exceeded"),
        _task(1, TaskStatus.RUNNING, 2, host="h2"),
        _task(0, TaskStatus.RUNNING),
    ]
    assert observations(tasks, (), "") == {
        "0": Observation(up=True, where="h1", host="h1"),
        "1": Observation(True, "h2", "FAILED on h1: Memory limit exceeded", "h2"),
    }


def test_a_task_without_a_host_says_what_it_waits_for() -> None:
    """The words are Aurora's own, of this task alone."""
    tasks = [_task(0, TaskStatus.PENDING), _task(1, TaskStatus.PENDING, host="")]
    said = {"task-1-1": "Insufficient: RAM", "task-0-1": "Limit not met"}
    pending: list[Json] = [{"taskId": task, "reason": reason} for task, reason in said.items()]
    seen = observations(tasks, pending, "")
    assert seen["1"] == Observation(False, "", "PENDING: Insufficient: RAM")
    assert seen["0"].reason == "PENDING: Limit not met"


def test_a_throttled_task_says_so_with_its_last_end() -> None:
    """Aurora waits before the next start of a task that fails soon."""
    tasks = [
        _task(0, TaskStatus.FAILED, 1, "exit 1"),
        _task(0, TaskStatus.THROTTLED, 2, "Rescheduled, penalized for 30 s"),
    ]
    assert observations(tasks, (), "")["0"].reason == (
        "FAILED on h1: exit 1; THROTTLED: Rescheduled, penalized for 30 s"
    )


def test_a_job_update_that_failed_is_a_reason_of_what_does_not_run() -> None:
    """An update that Aurora has rolled back leaves no task, but its containers may wait for it."""
    words = updates_words([_update(UpdateStatus.ROLLED_FORWARD, 1), _update(UpdateStatus.ROLLED_BACK, 2)])
    assert words == "job update u2 of ann (ROLLED_BACK)"
    seen = observations([_task(0, TaskStatus.RUNNING), _task(1, TaskStatus.KILLED, 1, "Rolled back")], (), words)
    assert seen["0"].reason == ""
    assert seen["1"].reason == f"KILLED on h1: Rolled back; {words}"
    assert updates_words([_update(UpdateStatus.ROLLED_FORWARD, 3), _update(UpdateStatus.FAILED, 2)]) == ""
    assert updates_words([]) == ""


def test_tasks_that_are_over_are_not_active() -> None:
    """A task that is being ended may still have processes."""
    tasks = [_task(number, status) for number, status in enumerate(TaskStatus)]
    over = {each for each in TaskStatus if each.name in {"FINISHED", "FAILED", "KILLED", "LOST"}}
    assert {TaskStatus(int(str(each["status"]))) for each in active(tasks).values()} == set(TaskStatus) - over


def test_a_state_that_aurora_adds_is_no_error() -> None:
    """Its newer versions have more states; such a task counts as one that may have processes."""
    task = {**_task(0, TaskStatus.RUNNING), "status": 99}
    assert not observations([task], (), "")["0"].up
    assert set(active([task])) == {0}


@pytest.mark.parametrize("status", list(UpdateStatus))
def test_an_update_holds_its_job_until_it_is_over(status: UpdateStatus) -> None:
    """Aurora refuses every other change of a job meanwhile."""
    over = {"ROLLED_FORWARD", "ROLLED_BACK", "ABORTED", "ERROR", "FAILED"}
    assert is_updating(_update(status)) == (status.name not in over)
    assert update_name(_update(status)) == f"job update u1 of ann ({status.name})"

"""A started container, until the supervisor hears of its end."""

from __future__ import annotations

import logging

import httpx
import pytest

from heron_scheduler_kit.attempt_process import Note
from heron_scheduler_kit.executors import Exit
from heron_scheduler_mesos.offers import Waiting
from heron_scheduler_mesos.started import StartedContainer
from heron_scheduler_mesos.tasks import Task, TaskPhase
from heron_testing.waiting import wait_until

_LIMIT_S = 20.0


def test_an_end_is_reported_whatever_reading_the_note_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise the container would never start again."""

    def read(_task: Task) -> Note | None:
        msg = "Invalid port: ':5:5051'"
        raise httpx.InvalidURL(msg)

    container = StartedContainer(Waiting(1, 1.0, 512), {})
    task = Task(1, 1, task_id="container-1.1.aa", phase=TaskPhase.ENDED, error="said (TASK_FAILED)", failed=True)
    ends: list[Exit] = []

    def look() -> bool:
        ends.extend(filter(None, [container.look(task, read)]))
        return bool(ends)

    with caplog.at_level(logging.ERROR):
        wait_until(look, _LIMIT_S, "the end is reported")
    assert [(each.container_id, each.error) for each in ends] == [(1, "said (TASK_FAILED)")]
    assert "container-1.1.aa" in caplog.text

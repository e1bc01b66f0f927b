"""The conditions under which a restarted container counts as running again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.ipc.documents.status import ProcessStatus, TaskStatus, TopologyStatus
from heron.spi.scheduler import ContainerStatus
from heron_cli.topologies.running.restart import containers_of, given_up, missing, refused


def process(name: str, incarnation: int, state: str = "running", error: str = "", container: int = 1) -> ProcessStatus:
    return ProcessStatus(container, name, state, 7, incarnation, last_error=error)


def status(*processes: ProcessStatus, task: str = "running", error: str = "") -> TopologyStatus:
    """Return the status of container 1 with the task count/3."""
    tasks = (TaskStatus(3, "count", 1, task, 1, last_error=error),)
    return TopologyStatus("words", "words-1", "running", 0.0, tasks=tasks, processes=processes)


def container(incarnation: int) -> tuple[ProcessStatus, ...]:
    return tuple(process(name, incarnation) for name in ("executor", "stmgr", "count-3", "metricsmgr"))


BEFORE = status(*container(1))


def test_every_process_must_be_new_and_running() -> None:
    """The task must be running too."""
    assert missing(BEFORE, status(*container(2)), 1) == ""
    assert missing(BEFORE, BEFORE, 1) == "executor is not started again yet"
    assert missing(BEFORE, status(*container(2)[:2]), 1) == "metricsmgr is not started again yet"
    assert missing(BEFORE, status(*container(2)[:3], process("metricsmgr", 1)), 1) != ""
    assert missing(BEFORE, status(*container(2), task="starting"), 1) == "task count/3 is starting"
    dying = (*container(2)[:3], process("metricsmgr", 2, "restarting", "killed"))
    assert missing(BEFORE, status(*dying), 1) == "metricsmgr is restarting: killed"


def test_a_task_that_has_ended_need_not_run() -> None:
    """It reports its end again."""
    assert missing(BEFORE, status(*container(2), task="ended"), 1) == ""


def test_a_container_without_status_before_must_report() -> None:
    """It was being started when the command began."""
    assert missing(status(), status(), 1) == "executor is not started again yet"
    assert missing(status(), status(*container(1)), 1) == ""


def test_container_0_has_its_managers() -> None:
    """It has no tasks."""
    managers = tuple(process(name, 1, container=0) for name in ("executor", "tmanager", "metricsmgr"))
    assert missing(status(), status(*managers), 0) == ""
    assert missing(status(), status(*managers[:1]), 0) == "tmanager is not started again yet"
    assert containers_of(BEFORE) == (1, 0)
    assert missing(BEFORE, status(*managers), 0) == "container 1 has not found the topology manager yet"
    assert missing(BEFORE, status(*managers, *container(1)), 0) == ""


@pytest.mark.parametrize("state", ["down", "failed"])
def test_a_process_that_was_given_up_is_an_error(state: str) -> None:
    """Waiting would not help; the error has the reason."""
    again = status(*container(2), task=state, error="no prices")
    assert given_up(BEFORE, again, 1) == f"task count/3 is {state}: no prices"
    assert given_up(BEFORE, replace(BEFORE, processes=(process("stmgr", 2, "down", "killed"),)), 1) == (
        "stmgr is down: killed"
    )
    assert given_up(BEFORE, status(*container(2)), 1) == ""
    assert given_up(BEFORE, again, 2) == ""


@pytest.mark.parametrize("state", ["down", "failed"])
def test_what_was_given_up_before_the_restart_does_not_count(state: str) -> None:
    """However long the container takes to begin, its former state is no error."""
    before = status(*container(1), process("splitter", 1, state, "killed"), task=state, error="no prices")
    assert given_up(before, before, 1) == ""


def test_an_executor_that_does_not_begin_is_given_up_with_its_reason() -> None:
    """With a changed package, for example, each start fails with the same error."""
    error = "exit code 1: the package was altered"
    assert refused(None, 1) == ("", 0)
    assert refused(ContainerStatus(1, True, 2, "ended by a restart"), 1) == ("", 0)
    assert refused(ContainerStatus(1, False, 1, "ended by a restart"), 1) == ("", 0)
    assert refused(ContainerStatus(1, False, 2, error), 1) == (error, 0)
    assert refused(ContainerStatus(1, False, 4, error), 1) == (error, 3)

"""Logs that a scheduler keeps: who wrote each line, the last lines of each log, and new lines once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import pytest

from heron.errors import SchedulerError, UsageError
from heron.spi.scheduler import (
    ContainerSpec,
    ContainerStatus,
    Job,
    JobLink,
    JobStatus,
    Scheduler,
    SchedulerState,
)
from heron_cli.topologies.logs.log_files import LogLine
from heron_cli.topologies.logs.remote_logs import RemoteLogs


class KeptOutput(Scheduler):
    """A scheduler whose only ability is the output of two containers."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"output"})

    gone = False

    def __init__(self, *outputs: list[str]) -> None:
        self.outputs = outputs

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        del options
        return cls()

    def output(self, topology: str, container_id: int, lines: int) -> Sequence[str]:
        del topology
        if not self.outputs[container_id]:
            msg = "it is waiting to start"
            raise SchedulerError(msg)
        return self.outputs[container_id][-lines:]

    def status(self, topology: str) -> JobStatus:
        del topology
        containers = tuple(ContainerStatus(number, True, 1) for number in range(0 if self.gone else len(self.outputs)))
        return JobStatus(SchedulerState.RUNNING if containers else SchedulerState.ABSENT, containers)

    def schedule(self, job: Job) -> None:
        raise NotImplementedError

    def kill(self, topology: str, topology_id: str = "") -> None:
        raise NotImplementedError

    def restart(self, topology: str, container_id: int) -> None:
        raise NotImplementedError

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        raise NotImplementedError

    def links(self, topology: str) -> tuple[JobLink, ...]:
        raise NotImplementedError


def _record(at: str, message: str, **bound: object) -> str:
    return json.dumps({"at": at, "level": "info", "message": message, "topology": "t", **bound})


STMGR = _record("2026-01-01T00:00:02.000", "connected", process="stmgr", container=1)
TASK = _record("2026-01-01T00:00:01.000", "started", process="instance", container=1, component="count", task=5)


def test_each_line_has_its_writer_and_the_engine_comes_first() -> None:
    """The order is that of the logs of this machine."""
    logs = RemoteLogs(KeptOutput(["executor-0 | up"], [STMGR, "count-5 | hello | world", "no record", TASK]), "t")
    assert logs.last(10) == (
        LogLine("count/5", "started", "2026-01-01T00:00:01.000", "info"),
        LogLine("stmgr-1", "connected", "2026-01-01T00:00:02.000", "info"),
        LogLine("container-1", "no record"),
        LogLine("count/5", "hello | world"),
        LogLine("executor-0", "up"),
    )


def test_the_last_lines_of_each_log_are_shown() -> None:
    """A task that prints much must not hide the others."""
    logs = RemoteLogs(KeptOutput([f"count-5 | {number}" for number in range(50)] + ["sum-6 | one"]), "t")
    assert [line.text for line in logs.last(2)] == ["48", "49", "one"]
    assert [
        line.text for line in RemoteLogs(KeptOutput(["count-5 | A needle", "count-5 | hay"]), "t").last(9, "NEEDLE")
    ] == ["A needle"]


def test_a_task_has_its_own_lines_only() -> None:
    """Tasks 5 and 15 must not be confused; an unknown task is an error."""
    scheduler = KeptOutput(["count-5 | five", "count-15 | fifteen", TASK])
    assert {line.who for line in RemoteLogs(scheduler, "t", 5).last(9)} == {"count/5"}
    with pytest.raises(UsageError, match="task 7 has no logs"):
        RemoteLogs(scheduler, "t", 7).last(9)


def test_new_lines_are_returned_once_also_if_the_first_ones_are_gone() -> None:
    """A scheduler keeps the last lines only, so their number says nothing."""
    scheduler = KeptOutput(["count-5 | a", "count-5 | b", "count-5 | b"])
    logs = RemoteLogs(scheduler, "t")
    logs.last(9)
    assert list(logs.new()) == []
    scheduler.outputs[0][:] = ["count-5 | b", "count-5 | b", "count-5 | c", "count-5 | d"]
    assert [line.text for line in logs.new()] == ["c", "d"]
    scheduler.outputs[0][:] = ["count-5 | after a restart"]
    assert [line.text for line in logs.new()] == ["after a restart"]


def test_a_container_without_lines_says_why_once_and_hides_no_other() -> None:
    """One that waits for its image must not keep the logs of the others from a person."""
    scheduler = KeptOutput([], ["count-5 | a"])
    logs = RemoteLogs(scheduler, "t")
    why = LogLine("container-0", "its lines cannot be read now: it is waiting to start")
    assert logs.last(9) == (why, LogLine("count/5", "a"))
    assert list(logs.new()) == []
    scheduler.outputs[0].append("sum-6 | b")
    assert list(logs.new()) == [LogLine("sum/6", "b")]
    lines = scheduler.outputs[0][:]
    scheduler.outputs[0].clear()
    assert list(logs.new()) == [why]
    scheduler.outputs[0][:] = lines
    assert list(logs.new()) == [], "the lines of before are not new"


def test_without_a_job_the_files_of_this_machine_are_read() -> None:
    """The containers of an ended topology are gone, and their output with them."""
    assert RemoteLogs.available(KeptOutput([]), "t")
    assert not RemoteLogs.available(KeptOutput(), "t")


def test_the_last_lines_of_a_job_that_has_gone_are_read_where_they_are() -> None:
    """A framework of Mesos ends with its topology. A container whose lines went with it has no line that says so."""
    scheduler = KeptOutput(["one"], ["two"])
    logs = RemoteLogs(scheduler, "t")
    assert [each.text for each in logs.new()] == ["one", "two"]
    scheduler.gone = True
    scheduler.outputs[0].append("last")
    scheduler.outputs[1].clear()
    assert [each.text for each in logs.new()] == ["last"]

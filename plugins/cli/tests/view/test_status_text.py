"""Status and metrics as text for people."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced
from rich.console import Console, RenderableType

from heron.ipc.documents.metrics_table import MetricsRow
from heron.ipc.documents.status import (
    ComponentStatus,
    Culprit,
    LeaderStatus,
    LongCallStatus,
    ProcessStatus,
    SinkOutage,
    StandbyStatus,
    TaskStatus,
    TopologyStatus,
    Unreached,
    UpdateStatus,
    UserErrorStatus,
)
from heron.spi.scheduler import ContainerStatus, JobLink, SchedulerState
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.topologies.running.status_report import StatusReport
from heron_cli.view.metrics_text import format_amount, format_seconds, metrics_text
from heron_cli.view.status_text import format_duration, status_text

RUN = ExecutionState("words", "words-1", 0.0, "me", "here", "local", "file:x", "/run", "/log/words-1", attached=False)
STATUS = TopologyStatus(
    "words",
    "words-1",
    "running",
    started_at_s=0.0,
    plan_version=3,
    components=(ComponentStatus("count", "bolt", 2, executed=12),),
    tasks=(
        TaskStatus(2, "count", 1, "running", 1),
        TaskStatus(3, "count", 1, "restarting", 2, last_error="count/3 died: killed by SIGKILL"),
    ),
    backpressure=(Culprit(3, "count", 1, 90.0, "the task is slow"),),
    errors=("count/3 died: killed by SIGKILL",),
    processes=(
        ProcessStatus(1, "executor", "running", 10, 1, host="here"),
        ProcessStatus(1, "stmgr", "running", 11, 2, restarts=1, host="here", last_error="exit code 1"),
        ProcessStatus(1, "count-2", "running", 12, 1, task_id=2, host="here"),
        ProcessStatus(1, "count-3", "restarting", 0, 2, task_id=3, restarts=1, host="here"),
    ),
)


def shown(view: RenderableType, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_running_topology_is_shown_with_its_problems() -> None:
    """The text has the run, plan, processes, causes of back pressure, each error once, and the log folder."""
    containers = (ContainerStatus(1, True, 2, where="executor 7 on w1"), ContainerStatus(2, False, 3, "exit code 143"))
    links = (JobLink("logs", "/log"), JobLink("Spark", "http://here:4040"))
    report = StatusReport(STATUS, RUN, SchedulerState.RUNNING, containers, links, "Spark application app-1")
    text = shown(status_text(report, 100.0))
    assert "words-1 by me on here, since 1970-01-01 00:00:00+00:00 (1 min 40 s); plan 3, 2 containers, 2 tasks" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "stmgr", "running", "11", "1", "here"] in rows
    assert ["1", "count-2", "running", "12", "here"] in rows
    assert ["1", "count-3", "restarting", "1", "here"] in rows
    assert "back pressure by count/3 for 10.0 s: the task is slow (container 1)" in text
    assert "Spark application app-1" in text
    assert "container 1: executor 7 on w1, attempt 2" in text
    assert "container 2 does not run, after 3 starts: exit code 143" in text
    assert text.count("count/3 died: killed by SIGKILL") == 1
    assert "error: stmgr of container 1: exit code 1" in text
    assert text.splitlines()[-2].strip() == "logs: /log/words-1"
    assert "Spark: http://here:4040" in text


def test_a_scheduler_without_an_answer_is_a_problem() -> None:
    """The topology manager answers; the line says why the places of the containers are missing."""
    refusal = "kubernetes refuses GET words/services: forbidden (403); grant the Role"
    text = shown(status_text(StatusReport(STATUS, RUN, scheduler_error=refusal), 100.0))
    assert f"the state of its job is unknown: {refusal}" in text


def test_an_error_of_several_tasks_is_one_line_with_its_count_and_times() -> None:
    """Each task reports it once; a person wants to know how often it happens, and whether it still does."""
    text = "topology 'words', component 'count', task {}: process raised KeyError: 'a'; at wc.py, line 3; it goes on"
    error = UserErrorStatus("count", "process: KeyError at wc.py, line 3", 1140, {2: 1000, 3: 140}, 10.0, 97.0)
    error = replaced(error, exception="KeyError", place="wc.py, line 3", message=text.format(2))
    tasks = tuple(replace_task(each, text.format(each.task_id)) for each in STATUS.tasks)
    status = replace(STATUS, errors=(text.format(2), text.format(3)), tasks=tasks, user_errors=(error,))
    found = shown(status_text(StatusReport(status, RUN, SchedulerState.RUNNING), 100.0), width=300)
    (line,) = [each for each in found.splitlines() if "KeyError" in each]
    assert (
        line.rstrip()
        == f"error: {text.format(2)} (raised 1,140 times, by 2 tasks, first 1 min 30 s ago, newest 3 s ago)"
    )
    later = replace(status, errors=(), tasks=(), user_errors=(replaced(error, first_at_s=None, message=""),))
    found = shown(status_text(StatusReport(later, RUN), 100.0), width=300)
    wanted = (
        "error: component 'count': process: KeyError at wc.py, line 3 (raised 1,140 times, by 2 tasks, newest 3 s ago)"
    )
    assert wanted in found, "a topology manager that took over has no message"
    once = replace(status, errors=(text.format(2),), user_errors=(replaced(error, count=1, tasks={2: 1}),))
    assert f"{text.format(2)}\n" in shown(status_text(StatusReport(once, RUN), 100.0), width=300).replace(" \n", "\n")


def replace_task(task: TaskStatus, error: str) -> TaskStatus:
    """The task with another last error."""
    return TaskStatus(task.task_id, task.component, task.container_id, task.state, task.incarnation, 0, error)


def test_a_topology_without_a_plan_is_starting() -> None:
    """Its state is already `running`, which would mislead."""
    text = shown(status_text(StatusReport(replace(STATUS, plan_version=0), RUN), 100.0))
    assert "no plan yet: its containers are starting" in text


def test_a_topology_that_has_ended_has_no_processes() -> None:
    """Only its report is left."""
    text = shown(status_text(StatusReport(replace(STATUS, state="failed", error="no prices")), 100.0))
    assert "words is not running; this is the end of its last run, words-1" in text
    assert "words (failed)" in text
    assert "error: no prices" in text
    assert "stmgr  " not in text


@pytest.mark.parametrize(
    ("seconds", "formatted"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (18720, "5 h 12 min"),
        (183600, "2 d 3 h"),
    ],
)
def test_durations_are_readable(seconds: float, formatted: str) -> None:
    """A duration has at most two units."""
    assert format_duration(seconds) == formatted


def test_metrics_are_shown_with_their_units() -> None:
    """Each component, task and process has a table."""
    rows = (
        MetricsRow("count", 0, "count", "execute-count", "counter", "tuples", 12345.0, {"stream": "default"}, 99.5),
        MetricsRow("count", 0, "count", "execute-latency", "histogram", "s", 12345.0, {}, 2000.0, 2.5e-6, 0.0123),
        MetricsRow("count", 3, "count-3", "user/ratio", "gauge", "1", 0.25),
        MetricsRow("", 0, "stmgr-1", "resident-bytes", "gauge", "bytes", 3 << 20),
    )
    lines = [line.split() for line in shown(metrics_text(rows)).splitlines()]
    assert [line for line in lines if len(line) == 1] == [["count"], ["count/3"], ["stmgr-1"]]
    assert ["execute-count", "(stream=default)", "12,345", "tuples", "99.5"] in lines
    assert ["execute-latency", "12,345", "entries", "2,000", "2.5", "µs", "12.3", "ms"] in lines
    assert ["user/ratio", "0.25"] in lines
    assert ["resident-bytes", "3.0", "MiB"] in lines
    narrow = shown(metrics_text(rows), 64)
    assert all(figure in narrow for figure in ("12,345", "per second", "99.5", "2.5 µs", "12.3 ms", "3.0 MiB"))
    assert "nothing has been reported yet" in shown(metrics_text(()))


def test_amounts_have_three_significant_digits() -> None:
    """Times range from nanoseconds to hours."""
    assert [format_seconds(each) for each in (0, 1.2e-7, 3.25e-3, 1.5, 12345.6)] == [
        "0 s",
        "120 ns",
        "3.25 ms",
        "1.5 s",
        "12,346 s",
    ]
    assert [format_amount(each, "1") for each in (0.125, 3.0, 1234.5)] == ["0.125", "3", "1,234"]


def test_a_sink_that_delivers_nothing_is_named_once() -> None:
    """A user can see why a dashboard has no values."""
    outages = (
        SinkOutage("graphite", 0, 12.0, "flush: connection refused"),
        SinkOutage("graphite", 1, 80.2, "flush: carbon does not answer"),
        SinkOutage("scribe", 1, 3.0),
    )
    text = shown(status_text(StatusReport(replace(STATUS, outages=outages), RUN), 100.0))
    reason = "(container 0, 1): flush: carbon does not answer; data flows on"
    assert f"metrics sink graphite has delivered nothing for 1 min 20 s {reason}" in " ".join(text.split())
    assert "metrics sink scribe has delivered nothing for 3 s (container 1); data flows on" in text


def test_the_leader_and_its_standbys_are_shown() -> None:
    """The line has their containers, the time, and missing standbys; without standbys there is no line."""
    leader = LeaderStatus(1, 21, "here", 7, 40.0)
    alone = replace(STATUS, leader=leader)
    assert "lead" not in shown(status_text(StatusReport(alone, RUN), 100.0))
    tmanagers = tuple(ProcessStatus(number, "tmanager", "running", 20 + number, 1, host="here") for number in (0, 1))
    standbys = (StandbyStatus(0, 20, "here", "running"), StandbyStatus(2, 0, "here", "restarting"))
    status = replace(alone, standbys=standbys, processes=(*STATUS.processes, *tmanagers))
    text = shown(status_text(StatusReport(status, RUN), 100.0))
    assert (
        "topology manager: container 1 leads for 1 min (pid 21, epoch 7); "
        "standing by: container 0 (pid 20), container 2 (restarting)"
    ) in text
    rows = [line.split() for line in text.splitlines()]
    assert ["0", "tmanager", "standing", "by", "20", "here"] in rows
    assert ["1", "tmanager", "leading", "21", "here"] in rows


def test_an_unreachable_container_is_named_with_those_that_cannot_reach_it() -> None:
    """The pairs show which part of a network has failed."""
    unreached = (Unreached(2, 0, 12.0), Unreached(2, 1, 80.2), Unreached(1, 2, 80.0))
    text = shown(status_text(StatusReport(replace(STATUS, unreached=unreached), RUN), 100.0))
    assert "container 2 is not reached from container 0, container 1, for 1 min 20 s; tuples for it wait" in text
    assert "container 1 is not reached from container 2, for 1 min 20 s" in text


def test_a_long_call_of_user_code_is_shown_with_its_line() -> None:
    """A person sees at once which task does not go on, and where to look."""
    calls = (LongCallStatus(3, "count", "process", "/me/words.py, line 7", 75.0),)
    text = shown(status_text(StatusReport(replace(STATUS, long_calls=calls), RUN), 100.0))
    assert "count/3 has been in one call of process for 25 s, at /me/words.py, line 7" in text


@pytest.mark.parametrize(
    ("phase", "waits_for", "line"),
    [
        ("prepare", "container 3", "update 4 is in phase prepare and waits for container 3"),
        ("switch", "", "update 4 is in phase switch"),
        ("withdrawn", "task 7 does not run", "the last update was withdrawn: task 7 does not run"),
    ],
)
def test_an_update_is_shown_until_it_is_complete(phase: str, waits_for: str, line: str) -> None:
    """Another command may wait for it, and the reason of a withdrawal is needed for the next attempt."""
    update = UpdateStatus(4, phase, "target", waits_for=waits_for)
    assert line in shown(status_text(StatusReport(replace(STATUS, update=update), RUN), 100.0))
    complete = replaced(update, phase="complete")
    assert "update" not in shown(status_text(StatusReport(replace(STATUS, update=complete), RUN), 100.0))

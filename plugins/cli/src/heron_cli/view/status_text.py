"""Renders the status of a topology for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heron.clock import wall_s
from heron.ipc.documents.status import ProcessStatus, StandbyStatus, TopologyStatus, UserErrorStatus
from heron_cli.topologies.running.remote_topology import not_running
from heron_cli.topologies.running.status_report import StatusReport
from heron_cli.view.checkpoint_text import status_lines
from heron_cli.view.console import open_console
from heron_cli.view.status_table import status_table
from heron_cli.view.text import format_count, format_time

__all__ = ["format_duration", "print_status", "status_text"]

_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
_GOOD = ("running", "ended", "leading", "standing by")


def print_status(report: StatusReport) -> None:
    """Print the status as it is now."""
    open_console().print(status_text(report, wall_s()))


def status_text(report: StatusReport, wall_s: float) -> Group:
    """Return the status, with the most important parts first; `wall_s` is the time now."""
    status = report.status
    parts: list[RenderableType] = [Text(_headline(report, wall_s)), status_table(status, wall_s)]
    if status.processes and report.run:
        parts.append(_process_table(status))
        parts += [Text(line) for line in _leader_lines(status, wall_s)]
    parts += [Text(line) for line in _place_lines(report)]
    parts += [Text(line, style="yellow") for line in _container_lines(report)]
    parts += [Text(line, style="yellow") for line in (*_unreached_lines(status), *_update_lines(status))]
    parts += [Text(line, style="yellow") for line in _long_call_lines(status, wall_s)]
    parts += [Text(line) for line in status_lines(status.checkpoints, wall_s)]
    parts += [Text(line, style="yellow") for line in _outage_lines(status)]
    parts += [Text(line, style="red") for line in _error_lines(status, wall_s)]
    if report.run:
        parts.append(Text(f"logs: {report.run.log_dir}"))
    parts += [Text(f"{link.title}: {link.url}") for link in report.links if link.title != "logs"]
    return Group(*parts)


def format_duration(seconds: float) -> str:
    """``12 s``, ``3 min 20 s``, ``5 h 12 min``, ``2 d 3 h``."""
    whole = max(0, round(seconds))
    for size, large, part, small in _UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large} {rest} {small}" if rest else f"{whole // size} {large}"
    return f"{whole} s"


def _headline(report: StatusReport, wall_s: float) -> str:
    status, run = report.status, report.run
    if run is None:
        return f"{status.topology} is not running; this is the end of its last run, {status.topology_id}"
    since = format_time(status.started_at_s)
    plan = f"plan {status.plan_version}" if status.plan_version else "no plan yet: its containers are starting"
    age = format_duration(wall_s - status.started_at_s)
    containers = 1 + len({task.container_id for task in status.tasks})
    size = f"{format_count(containers)} containers, {format_count(len(status.tasks))} tasks"
    return f"{run.topology_id} by {run.user} on {run.host}, since {since} ({age}); {plan}, {size}"


def _process_table(status: TopologyStatus) -> Table:
    tasks = {task.task_id: task.state for task in status.tasks}
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="bold")
    for heading in ("container", "process", "state", "pid", "restarts", "host"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in {"pid", "restarts"} else "left")
    for each in status.processes:
        state = _state(each, tasks, status)
        shown = Text(state, style="" if state in _GOOD else "yellow")
        pid = str(each.pid) if each.pid else ""
        table.add_row(str(each.container_id), each.process, shown, pid, str(each.restarts or ""), each.host)
    return table


def _state(process: ProcessStatus, tasks: dict[int, str], status: TopologyStatus) -> str:
    """Return the state to show: that of the task of the process, or the role of a topology manager with standbys."""
    if process.state != "running":
        return process.state
    if process.process == "tmanager" and status.leader and status.standbys:
        return "leading" if process.container_id == status.leader.container_id else "standing by"
    return tasks.get(process.task_id, process.state)


def _leader_lines(status: TopologyStatus, wall_s: float) -> Iterator[str]:
    """Yield which topology manager leads, when there are standbys."""
    leader = status.leader
    if leader is not None and status.standbys:
        others = ", ".join(f"container {each.container_id}{_fate(each)}" for each in status.standbys)
        age = format_duration(wall_s - leader.since_s)
        yield (
            f"topology manager: container {leader.container_id} leads for {age} (pid {leader.pid}, epoch "
            f"{leader.epoch}); standing by: {others}"
        )


def _fate(standby: StandbyStatus) -> str:
    return f" (pid {standby.pid})" if standby.state == "running" else f" ({standby.state})"


def _place_lines(report: StatusReport) -> Iterator[str]:
    """Yield the places of the containers, as far as the scheduler reports them."""
    if report.handle:
        yield report.handle
    for each in report.containers:
        if each.running and each.where:
            again = f", attempt {each.attempts}" if each.attempts > 1 else ""
            yield f"  container {each.container_id}: {each.where}{again}"


def _container_lines(report: StatusReport) -> Iterator[str]:
    if report.scheduler_error:
        yield f"the state of its job is unknown: {report.scheduler_error}"
    for each in report.containers:
        if not each.running:
            yield not_running(each)


def _outage_lines(status: TopologyStatus) -> Iterator[str]:
    for sink in sorted({each.sink for each in status.outages}):
        there = [each for each in status.outages if each.sink == sink]
        containers = ", ".join(str(each.container_id) for each in there)
        worst = max(there, key=lambda each: each.outage_s)
        longest = format_duration(worst.outage_s)
        reason = f": {worst.reason}" if worst.reason else ""
        yield f"metrics sink {sink} has delivered nothing for {longest} (container {containers}){reason}; data flows on"


def _unreached_lines(status: TopologyStatus) -> Iterator[str]:
    for container_id in sorted({each.container_id for each in status.unreached}):
        there = [each for each in status.unreached if each.container_id == container_id]
        sources = ", ".join(f"container {each.by}" for each in there)
        longest = format_duration(max(each.silent_s for each in there))
        yield f"container {container_id} is not reached from {sources}, for {longest}; tuples for it wait"


def _long_call_lines(status: TopologyStatus, wall_s: float) -> Iterator[str]:
    for each in status.long_calls:
        task, age = f"{each.component}/{each.task_id}", format_duration(wall_s - each.since_s)
        yield f"{task} has been in one call of {each.function} for {age}, at {each.place}"


def _update_lines(status: TopologyStatus) -> Iterator[str]:
    """Yield the update and the change of the code under way, or why the last one was withdrawn or has returned."""
    code = status.code
    if code is not None and code.phase == "returned":
        yield f"the tasks run the former code again: {code.reason}"
    elif code is not None and code.phase != "complete":
        why = f": {code.reason}" if code.reason else ""
        yield f"the code of {', '.join(code.components)} changes, in phase {code.phase}{why}"
    update = status.update
    if update is None or update.phase == "complete":
        return
    if update.phase == "withdrawn":
        yield f"the last update was withdrawn: {update.waits_for}"
    else:
        waits = f" and waits for {update.waits_for}" if update.waits_for else ""
        yield f"update {update.number} is in phase {update.phase}{waits}"


def _error_lines(status: TopologyStatus, wall_s: float) -> Iterator[str]:
    """Yield each error once: one that several tasks have raised is one line, with its count."""
    shown: set[object] = set()
    for error in filter(None, (status.error, *status.errors)):
        counted = next((each for each in status.user_errors if each.has(error)), None)
        what = error if counted is None else (counted.component, counted.error)
        if what not in shown:
            shown |= {what, error}
            yield f"error: {error}{_times(counted, wall_s) if counted is not None else ''}"
    for known in status.user_errors:  # a topology manager that took over has no text of them
        if (known.component, known.error) not in shown:
            yield f"error: component {known.component!r}: {known.error}{_times(known, wall_s)}"
    for task in status.tasks:
        counts = any(each.has(task.last_error) for each in status.user_errors)
        if task.last_error and task.last_error not in shown and not counts:
            shown.add(task.last_error)
            yield f"error: {task.component}/{task.task_id} in container {task.container_id}: {task.last_error}"
    for each in status.processes:
        if each.last_error and not each.task_id and not any(each.last_error in str(error) for error in shown):
            yield f"error: {each.process} of container {each.container_id}: {each.last_error}"


def _times(error: UserErrorStatus, wall_s: float) -> str:
    """How often an error was raised, by which tasks, and when; empty for one that was raised once."""
    if error.count <= 1:
        return ""
    ages = {"first": error.first_at_s, "newest": error.newest_at_s}
    parts = [f"raised {error.count:,} times", *([f"by {len(error.tasks)} tasks"] if len(error.tasks) > 1 else [])]
    parts += [f"{name} {format_duration(wall_s - at_s)} ago" for name, at_s in ages.items() if at_s is not None]
    return f" ({', '.join(parts)})"

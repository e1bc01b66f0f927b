"""What is wrong with a topology, in sentences for people, the gravest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from heron_cli.client import TopologyStatus
from heron_service_tracker.answers.answers import TroubleItem
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.observed.recent_failures import RECENT_MINUTES, recently_failed
from heron_service_tracker.observed.recent_memory import GROWTH_MINUTES, growing_tasks
from heron_service_tracker.observed.task_figures import FiguresOfTasks

__all__ = ["troubles"]

_ENDED = frozenset({"finished", "failed", "killed"})
_MOST = 20  # sentences; a topology of a thousand dead tasks has one cause
_ALWAYS = 0.95  # the share of time of a task that has no time to spare
_MIB = 1 << 20
_WAITING_BYTES = _MIB // 4  # a queue that is longer than that of a task that only has much to do


def troubles(topology: ObservedTopology) -> tuple[TroubleItem, ...]:
    """Return at most 20 sentences, each with what it concerns; none when nothing is known to be wrong."""
    found = [*_of_the_run(topology)]
    status = topology.status
    if status is not None and status.state not in _ENDED and topology.entry.state not in _ENDED:
        found += _of_a_running_one(status)
        if topology.checkpoints and (newest := topology.checkpoints[-1]).error:
            which = f"checkpoint {newest.number}" if newest.number else "a checkpoint"
            found.append(TroubleItem("checkpoint", f"{which} failed: {newest.error}"))
        found += _of_tasks_behind(status, topology.figures)
        found += _of_large_tasks(topology.figures)
        found += _of_growing_tasks(topology)
        found += [
            TroubleItem("failures", f"{number} tuples of {name} have failed in the last {RECENT_MINUTES} minutes", name)
            for name, number in recently_failed(topology.failures).items()
        ]
    elif status is not None:
        found += _of_failed_tuples(status)
    told: dict[str, TroubleItem] = {}
    for each in found:
        told.setdefault(each.text, each)
    sentences = tuple(told.values())
    more = len(sentences) - _MOST
    return (*sentences[: _MOST - 1], TroubleItem("more", f"and {more + 1} more")) if more > 0 else sentences


def _of_the_run(topology: ObservedTopology) -> Iterator[TroubleItem]:
    status = topology.status
    if status is not None and status.error:
        yield TroubleItem("run", f"it {status.state}: {status.error}" if status.state == "failed" else status.error)
    for error in topology.entry.errors:
        yield TroubleItem("run", error)
    if topology.error and topology.entry.state not in _ENDED:
        yield TroubleItem("away", "newer values cannot be read")


def _of_a_running_one(status: TopologyStatus) -> Iterator[TroubleItem]:
    yield from _of_processes(status, "down", "is down")
    for each in status.backpressure:
        text = f"{each.component}/{each.task_id} holds its spouts back{_because(each.cause)}"
        yield TroubleItem("back-pressure", text, each.component, each.task_id)
    for call in status.long_calls:
        text = f"{call.component}/{call.task_id} has been in one call of {call.function} for long, at {call.place}"
        yield TroubleItem("long-call", text, call.component, call.task_id)
    for silent in status.unreached:
        text = f"container {silent.container_id} has not been reached for {silent.silent_s:.0f} s"
        yield TroubleItem("container-unreached", text, container_id=silent.container_id)
    yield from _of_processes(status, "restarting", "is restarting")
    for sink in status.outages:
        text = f"the sink {sink.sink} of container {sink.container_id} has delivered nothing for {sink.outage_s:.0f} s"
        yield TroubleItem("sink-outage", f"{text}{_because(sink.reason)}", container_id=sink.container_id)


def _of_failed_tuples(status: TopologyStatus) -> Iterator[TroubleItem]:
    """What failed in a topology that has ended: nobody has to act at once, but not all of its work was done."""
    for each in status.components:
        if each.failed and each.kind != "spout":
            yield TroubleItem("failures", f"{each.failed:,} tuples of {each.name} failed until it ended", each.name)


def _of_tasks_behind(status: TopologyStatus, figures: FiguresOfTasks) -> Iterator[TroubleItem]:
    """The busiest task of each component that does not keep up.

    Back pressure begins only when a buffer is full, which may take minutes.
    """
    known = {each.component for each in status.backpressure}
    for each in status.components:
        if each.kind == "spout" or each.queue_bytes < _WAITING_BYTES or each.name in known:
            continue
        tasks = {task: of for task, of in figures.by_task.items() if figures.components[task] == each.name}
        busy, task_id = max(((of.busy[0] or 0.0, task) for task, of in tasks.items()), default=(0.0, 0))
        if busy >= _ALWAYS:
            waiting = f"{each.queue_bytes / _MIB:.1f} MiB wait for {each.name}"
            text = f"{each.name}/{task_id} does not keep up: it is busy {busy:.0%} of the time, and {waiting}"
            yield TroubleItem("behind", text, each.name, task_id)


def _of_large_tasks(figures: FiguresOfTasks) -> Iterator[TroubleItem]:
    for each in figures.large_tasks():
        others = f"the other tasks of {each.component} about {each.usual_bytes / _MIB:.0f} MiB"
        text = f"{each.component}/{each.task_id} has {each.resident_bytes / _MIB:.0f} MiB of memory, and {others}"
        yield TroubleItem("memory", text, each.component, each.task_id)


def _of_growing_tasks(topology: ObservedTopology) -> Iterator[TroubleItem]:
    for each in growing_tasks(topology.memory, topology.figures):
        before = f"{each.bytes_before / _MIB:.0f} MiB about {GROWTH_MINUTES} minutes ago"
        text = (
            f"{each.component}/{each.task_id} needs more and more memory: {before}, {each.bytes_now / _MIB:.0f} MiB now"
        )
        yield TroubleItem("memory", text, each.component, each.task_id)


def _of_processes(status: TopologyStatus, state: str, verb: str) -> Iterator[TroubleItem]:
    components = {each.task_id: each.component for each in status.tasks}
    for each in status.processes:
        if each.state == state:
            text = f"{each.process} in container {each.container_id} {verb}{_because(each.last_error)}"
            component = components.get(each.task_id, "")
            yield TroubleItem(f"process-{state}", text, component, each.task_id, each.container_id)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""

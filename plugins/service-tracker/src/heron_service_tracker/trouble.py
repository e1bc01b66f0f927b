"""What is wrong with a topology, in sentences for people, the gravest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from heron_cli.client import TopologyStatus
from heron_service_tracker.observed import ObservedTopology
from heron_service_tracker.recent_failures import RECENT_MINUTES, recently_failed

__all__ = ["troubles"]

_ENDED = frozenset({"finished", "failed", "killed"})
_MOST = 20  # sentences; a topology of a thousand dead tasks has one cause


def troubles(topology: ObservedTopology) -> tuple[str, ...]:
    """Return at most 20 sentences; none when nothing is known to be wrong."""
    found = [*_of_the_run(topology)]
    status = topology.status
    if status is not None and status.state not in _ENDED and topology.entry.state not in _ENDED:
        found += _of_a_running_one(status)
        found += [
            f"{number} tuples of {component} have failed in the last {RECENT_MINUTES} minutes"
            for component, number in recently_failed(topology.failures).items()
        ]
    sentences = list(dict.fromkeys(found))
    more = len(sentences) - _MOST
    return (*sentences[: _MOST - 1], f"and {more + 1} more") if more > 0 else tuple(sentences)


def _of_the_run(topology: ObservedTopology) -> Iterator[str]:
    status = topology.status
    if status is not None and status.error:
        yield f"it {status.state}: {status.error}" if status.state == "failed" else status.error
    yield from topology.entry.errors
    if topology.error and topology.entry.state not in _ENDED:
        yield f"newer values cannot be read: {topology.error}"


def _of_a_running_one(status: TopologyStatus) -> Iterator[str]:
    for down in status.processes:
        if down.state == "down":
            yield f"{down.process} in container {down.container_id} is down{_because(down.last_error)}"
    for each in status.backpressure:
        yield f"{each.component}/{each.task_id} holds its spouts back{_because(each.cause)}"
    for call in status.long_calls:
        yield f"{call.component}/{call.task_id} has been in one call of {call.function} for long, at {call.place}"
    yield from _of_the_engine(status)


def _of_the_engine(status: TopologyStatus) -> Iterator[str]:
    for silent in status.unreached:
        yield f"container {silent.container_id} has not been reached for {silent.silent_s:.0f} s"
    for process in status.processes:
        if process.state == "restarting":
            yield f"{process.process} in container {process.container_id} is restarting{_because(process.last_error)}"
    for sink in status.outages:
        where = f"the sink {sink.sink} of container {sink.container_id}"
        yield f"{where} has delivered nothing for {sink.outage_s:.0f} s{_because(sink.reason)}"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""

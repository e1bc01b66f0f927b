"""Asks the spouts of a running topology what they emit, all at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from heron.api.definition import ComponentKind, GroupingKind, TopologyDefinition
from heron.errors import UsageError
from heron.planner.packing_plan import PackingPlan
from heron.spi.task_capture import TaskCapture
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_load_replay.load_description import FORMAT, LoadDescription, SpoutLoad
from heron_load_replay.load_rows import CapturedTask

__all__ = ["CaptureTerms", "capture_topology", "described", "key_fields", "spout_tasks"]

_MOST_TASK_BYTES = 32 << 20  # the topology manager refuses more
_LEAST_TASK_BYTES = 1 << 10

Connected = Callable[[], RemoteTopology]
"""Opens a connection of its own for each task, because a connection waits for its answer."""


@dataclass(frozen=True, slots=True)
class CaptureTerms:
    """How long a capture lasts, how many bytes all its tasks may record together, and whether it takes values."""

    seconds: float
    most_bytes: int
    shape: bool


def capture_topology(connected: Connected, terms: CaptureTerms) -> tuple[TopologyDefinition, list[CapturedTask]]:
    """Capture every task of every spout of a topology.

    Raises:
        HeronError: when a task does not answer, or declines; then there is no capture.
        UsageError: when the limit has no room for so many tasks.
    """
    with connected() as topology:
        topology.status()  # says what is wrong with a topology that does not run
        plans = topology.plans()
    partitions = spout_tasks(plans.definition, plans.packing)
    task_bytes = min(terms.most_bytes // len(partitions), _MOST_TASK_BYTES)
    if task_bytes < _LEAST_TASK_BYTES:
        msg = f"--limit: {terms.most_bytes} bytes for {len(partitions)} tasks is less than {_LEAST_TASK_BYTES} for each"
        raise UsageError(msg)
    keys = key_fields(plans.definition) if terms.shape else None

    def ask(task_id: int) -> TaskCapture:
        with connected() as topology:
            return topology.capture(task_id, seconds=terms.seconds, most_bytes=task_bytes, keys=keys)

    with ThreadPoolExecutor(len(partitions)) as threads:
        captures = list(threads.map(ask, partitions))
    return plans.definition, [CapturedTask(each, partitions[each.task_id]) for each in captures]


def spout_tasks(definition: TopologyDefinition, packing: PackingPlan) -> dict[int, int]:
    """Return the partition of each task of a spout: its place among the tasks of its component."""
    instances = sorted(
        (each for container in packing.containers for each in container.instances),
        key=lambda each: each.component_index,
    )
    found: dict[int, int] = {}
    for spout in (each.name for each in definition.components if each.kind is ComponentKind.SPOUT):
        tasks = [each.task_id for each in instances if each.component == spout]
        found |= {task_id: place for place, task_id in enumerate(tasks)}
    return found


def key_fields(definition: TopologyDefinition) -> frozenset[tuple[str, str]]:
    """Return the ``(stream, field)`` of spouts by which bolts group; a custom grouping may use every field."""
    keys: set[tuple[str, str]] = set()
    for spout in definition.components:
        if spout.kind is not ComponentKind.SPOUT:
            continue
        for stream in spout.outputs:
            for _, subscription in definition.consumers(spout.name, stream.name):
                grouping = subscription.grouping
                fields = stream.fields if grouping.kind is GroupingKind.CUSTOM else grouping.fields
                keys |= {(stream.name, field) for field in fields}
    return frozenset(keys)


def described(definition: TopologyDefinition, tasks: Sequence[CapturedTask], terms: CaptureTerms) -> LoadDescription:
    """Return what the file of a capture says about it."""
    captures = [each.capture for each in tasks]
    unkept: dict[str, int] = {}
    for reason, number in (each for capture in captures for each in capture.unkept.items()):
        unkept[reason] = unkept.get(reason, 0) + number
    return LoadDescription(
        FORMAT,
        definition.name,
        min(each.began_at_s for each in captures),
        max(each.lasted_s for each in captures),
        terms.shape,
        {name: _spout_load(definition, name, tasks) for name in _names(tasks)},
        sum(flush.kept for each in captures for flush in each.flushes),
        sum(each.after_limit for each in captures),
        unkept,
    )


def _names(tasks: Sequence[CapturedTask]) -> Mapping[str, None]:
    return dict.fromkeys(each.capture.component for each in tasks)


def _spout_load(definition: TopologyDefinition, name: str, tasks: Sequence[CapturedTask]) -> SpoutLoad:
    streams = {each.name: each.fields for each in definition.component(name).outputs}
    own = sorted((each for each in tasks if each.capture.component == name), key=lambda each: each.partition)
    return SpoutLoad(streams, tuple(sum(flush.tuples for flush in each.capture.flushes) for each in own))

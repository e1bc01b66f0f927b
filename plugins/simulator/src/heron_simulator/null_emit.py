"""The emit functions of the null engine: make the tuple, call `process`, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Protocol

from heron.api.definition import DEFAULT_STREAM, ComponentDefinition, GroupingDefinition, GroupingKind
from heron.api.tuple import Tuple
from heron.errors import UsageError

__all__ = ["Emit", "Process", "emit_to", "emit_to_each"]

Process = Callable[[Tuple], None]
"""A bolt's `process`."""


class Emit(Protocol):
    """What spouts and bolts call; the values come first with both, and nothing else matters here."""

    def __call__(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None: ...


def emit_to(
    processes: Sequence[Process], grouping: GroupingDefinition, source: ComponentDefinition, make: type[Tuple]
) -> Emit:
    """The emit for one consumer, written out for what its grouping needs."""
    if len(processes) == 1:
        return _emit_to_one(processes[0], make)
    match grouping.kind:
        case GroupingKind.SHUFFLE | GroupingKind.NONE | GroupingKind.LOCAL_OR_SHUFFLE:
            return _emit_in_turn(processes, make)
        case GroupingKind.FIELDS if len(grouping.fields) == 1:
            stream = source.output(DEFAULT_STREAM)
            return _emit_by_key(processes, stream.fields.index(grouping.fields[0]) if stream else 0, make)
        case GroupingKind.ALL:
            return emit_to_each([_emit_to_one(process, make) for process in processes])
        case _:
            msg = (
                f"component {source.name!r}: the null engine has no {grouping.kind.value} grouping over "
                f"{len(grouping.fields)} fields; use shuffle, all, or fields with one field"
            )
            raise UsageError(msg)


def _emit_to_one(process: Process, make: type[Tuple]) -> Emit:
    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        process(make(None, tuple(values)))

    return emit


def _emit_in_turn(processes: Sequence[Process], make: type[Tuple]) -> Emit:
    following = cycle(processes).__next__

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        following()(make(None, tuple(values)))

    return emit


def _emit_by_key(processes: Sequence[Process], position: int, make: type[Tuple]) -> Emit:
    count = len(processes)

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        processes[hash(values[position]) % count](make(None, tuple(values)))

    return emit


def emit_to_each(emits: Sequence[Emit]) -> Emit:
    """The emit for several consumers, or none."""

    def emit(
        values: Sequence[object],
        tup_id: object = None,
        stream: object = None,
        anchors: object = None,
        direct_task: object = None,
        need_task_ids: object = None,
    ) -> None:
        for each in emits:
            each(values)

    return emit

"""From a physical plan to the routes of a task's output streams. Pure, but for the author's custom groupings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from heron.api.definition import ComponentDefinition, GroupingKind, InputDefinition, StreamDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import EmitError
from heron.instance.out_stream import Chooser, KeyedEdge, StreamRoutes
from heron.instance.splitters import ChosenSplitter, KeyMemo, KeySplitter, PartialKeyMemo, ShuffleSplitter, Splitter
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import PlanIndex

__all__ = ["CustomGroupings", "routes_of"]

CustomGroupings = Callable[[str, InputDefinition], ICustomGrouping]
"""Gives the author's grouping object for a consumer's subscription, prepared with its tasks."""


@dataclass(slots=True)
class _Routes:
    whole: list[int] = field(default_factory=list)
    splitters: list[Splitter] = field(default_factory=list)
    keyed: list[KeyedEdge] = field(default_factory=list)
    choosers: list[tuple[Chooser, list[object]]] = field(default_factory=list)
    direct_picks: list[list[object]] = field(default_factory=list)
    direct_tasks: set[int] = field(default_factory=set)


def routes_of(index: PlanIndex, task_id: int, stream: StreamDefinition, custom: CustomGroupings) -> StreamRoutes:
    """Who gets the rows that this task emits on this stream."""
    task = index.tasks[task_id]
    found = _Routes()
    for consumer, subscription in index.plan.topology.consumers(task.component, stream.name):
        tasks = index.tasks_of(consumer.name)
        if tasks:
            _add(found, index, task_id, stream, consumer, subscription, custom)
    return StreamRoutes(
        tuple(dict.fromkeys(found.whole)),
        tuple(found.splitters),
        tuple(found.keyed),
        tuple(found.choosers),  # type: ignore[arg-type]  # the lists are filled by generated code
        tuple(found.direct_picks),  # type: ignore[arg-type]
        frozenset(found.direct_tasks),
    )


def _add(
    found: _Routes,
    index: PlanIndex,
    task_id: int,
    stream: StreamDefinition,
    consumer: ComponentDefinition,
    subscription: InputDefinition,
    custom: CustomGroupings,
) -> None:
    tasks = index.tasks_of(consumer.name)
    grouping = subscription.grouping
    match grouping.kind:
        case GroupingKind.ALL:
            found.whole.extend(tasks)
        case GroupingKind.LOWEST:
            found.whole.append(min(tasks))
        case GroupingKind.SHUFFLE | GroupingKind.NONE:
            _add_shuffle(found, tasks, task_id)
        case GroupingKind.LOCAL_OR_SHUFFLE:
            here = index.tasks[task_id].container_id
            local = tuple(task for task in tasks if index.tasks[task].container_id == here)
            _add_shuffle(found, local or tasks, task_id)
        case GroupingKind.FIELDS | GroupingKind.PARTIAL_KEY:
            positions = tuple(stream.fields.index(name) for name in grouping.fields)
            memo_class = KeyMemo if grouping.kind is GroupingKind.FIELDS else PartialKeyMemo
            groups = key_groups_of(index.plan.topology)
            memo = memo_class(tasks, groups, single=len(positions) == 1)
            if len(tasks) == 1:
                found.whole.append(tasks[0])  # the look-up is only the check of the key's type
                found.keyed.append(KeyedEdge(positions, memo, None))
                return
            splitter = KeySplitter(memo)
            found.splitters.append(splitter)
            found.keyed.append(KeyedEdge(positions, memo, splitter.picks))  # type: ignore[arg-type]
        case GroupingKind.CUSTOM:
            chosen = ChosenSplitter()
            found.splitters.append(chosen)
            choose = _checked(custom(consumer.name, subscription), consumer.name, tasks)
            found.choosers.append((choose, chosen.picks))  # type: ignore[arg-type]
        case GroupingKind.DIRECT:
            direct = ChosenSplitter()
            found.splitters.append(direct)
            found.direct_picks.append(direct.picks)  # type: ignore[arg-type]
            found.direct_tasks.update(tasks)


def _add_shuffle(found: _Routes, tasks: tuple[int, ...], task_id: int) -> None:
    if len(tasks) == 1:
        found.whole.append(tasks[0])
    else:
        found.splitters.append(ShuffleSplitter(tasks, start=task_id))


def _checked(grouping: ICustomGrouping, consumer: str, tasks: tuple[int, ...]) -> Chooser:
    allowed = frozenset(tasks)

    def choose(values: tuple[object, ...]) -> tuple[int, ...]:
        chosen = tuple(dict.fromkeys(grouping.choose_tasks(values)))
        if not allowed.issuperset(chosen):
            strangers = sorted(set(chosen) - allowed)
            msg = (
                f"custom grouping {type(grouping).__name__} chose tasks {strangers}, which are not of {consumer!r}; "
                f"its tasks are {sorted(allowed)}"
            )
            raise EmitError(msg)
        return chosen

    return choose

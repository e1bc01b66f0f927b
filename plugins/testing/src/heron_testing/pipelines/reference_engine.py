"""The meaning of a pipeline: every operator applied to the whole input at once, without tasks, time or state.

It is written apart from the operators of the package, so that a mistake is not made twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from heron_streamlet import KeyedWindow, StageContext, Window, WindowResult
from heron_streamlet.plan.graph import EARLY, LATE, Graph, Node
from heron_streamlet.plan.operators import (
    AssignEventTime,
    FilterBy,
    FlatMap,
    KeyBy,
    Keyed,
    Map,
    Read,
    Windowed,
)
from heron_streamlet.windowing.event_time import event_time_us
from heron_streamlet.windowing.fold import Fold
from heron_streamlet.windowing.keyed_operators import (
    CountFold,
    Distinct,
    KeyedOperator,
    MapWithState,
    RunningFold,
    SessionFold,
    WindowFold,
    WindowJoin,
)
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow

__all__ = ["results_of"]

NEVER_LATE = -(10**18)


@dataclass(frozen=True)
class Element:
    """A value with its event time and bound, and the source partition that it comes from."""

    value: Any
    partition: tuple[int, str] = (0, "")
    time_us: int = 0
    bound_us: int = NEVER_LATE


def results_of(graph: Graph) -> dict[str, list[Any]]:
    """The values of every node, by its name; those of a sink or consumer are what it received."""
    outputs: dict[tuple[int, str], list[Element]] = {}
    for node in graph.nodes:
        inputs = [outputs[each.node, each.output] for each in node.inputs]
        for output, elements in _outputs(node, inputs).items():
            outputs[node.number, output] = elements
    return {node.name: [each.value for each in outputs[node.number, "results"]] for node in graph.nodes}


def _outputs(node: Node, inputs: list[list[Element]]) -> dict[str, list[Element]]:
    operator = node.operator
    if isinstance(operator, Windowed):
        return _windows(operator, inputs)
    if isinstance(operator, Read):
        return {"results": list(_read(node, operator))}
    elements = [each for one in inputs for each in one]
    if isinstance(operator, Map):
        elements = [replace(each, value=operator.function(each.value)) for each in elements]
    elif isinstance(operator, FlatMap):
        elements = [replace(each, value=value) for each in elements for value in operator.function(each.value)]
    elif isinstance(operator, FilterBy):
        elements = [each for each in elements if operator.function(each.value)]
    elif isinstance(operator, KeyBy):
        value_of = operator.value or (lambda value: value)
        elements = [replace(each, value=(operator.key(each.value), value_of(each.value))) for each in elements]
    elif isinstance(operator, AssignEventTime):
        elements = list(_timed(operator, elements))
    elif isinstance(operator, Keyed):
        elements = list(_keyed(operator, elements))
    return {"results": elements}


def _read(node: Node, operator: Read) -> Iterable[Element]:
    for name in operator.source.partitions(node.partitions):
        reader = operator.source.open(name, None, StageContext(node.name))
        while (values := reader.read(1000)) is not None:
            yield from (Element(value, (node.number, name)) for value in values)


def _timed(operator: AssignEventTime, elements: list[Element]) -> Iterable[Element]:
    largest: dict[object, int] = {}
    for each in elements:
        time_us = event_time_us(operator.function(each.value))
        bound_us = largest[each.partition] - operator.lag_us if each.partition in largest else NEVER_LATE
        largest[each.partition] = max(time_us, largest.get(each.partition, time_us))
        yield replace(each, time_us=time_us, bound_us=bound_us)


def _keyed(operator: Keyed, elements: list[Element]) -> Iterable[Element]:
    seen: dict[object, list[Any]] = defaultdict(list)
    keyed = operator.operator
    for each in elements:
        if isinstance(keyed, Distinct):
            if each.value not in seen:
                seen[each.value] = []
                yield each
            continue
        key, value = each.value
        values = seen[key]
        values.append(value)
        if isinstance(keyed, RunningFold):
            yield replace(each, value=(key, _folded(keyed.fold, values)))
        elif isinstance(keyed, CountFold):
            full = len(values) - keyed.window.size
            if full >= 0 and full % keyed.window.slide == 0:
                yield replace(each, value=(key, _folded(keyed.fold, values[full:])))
        elif isinstance(keyed, MapWithState):
            state, result = keyed.initial(), None
            for one in values:
                state, result = keyed.function(state, one)
            yield replace(each, value=(key, result))


def _windows(operator: Windowed, inputs: list[list[Element]]) -> dict[str, list[Element]]:
    keyed = operator.operator
    late: list[Element] = []
    kept: dict[tuple[object, Window], tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    sessions: dict[object, list[tuple[int, Any]]] = defaultdict(list)
    for side, elements in enumerate(inputs):
        for each in elements:
            key, value = (None, each.value) if operator.whole else each.value
            windows, missed = _windows_of(operator.window, each)
            for window in windows:
                if isinstance(operator.window, SessionWindow):
                    sessions[key].append((each.time_us, value))
                else:
                    kept[key, window][side].append(value)
            if missed:
                late.append(each)
    if isinstance(operator.window, SessionWindow):
        for key, values in sessions.items():
            for window, members in _sessions(values, operator.window.gap_us):
                kept[key, window][0].extend(members)
    results = []
    for (key, window), sides in kept.items():
        place = window if operator.whole else KeyedWindow(key, window)
        results += [Element((place, value), time_us=window.end_us - 1) for value in _results(keyed, *sides)]
    finals = [replace(each, value=WindowResult(each.value[0], each.value[1], final=True)) for each in results]
    return {"results": results, LATE: late, EARLY: finals}


def _windows_of(window: SlidingWindow | SessionWindow, each: Element) -> tuple[list[Window], bool]:
    """The windows that an element is in, and whether it is late for another one."""
    if isinstance(window, SessionWindow):
        own = Window(each.time_us, each.time_us + window.gap_us)
        missed = own.end_us + window.allowed_lateness_us <= each.bound_us
        return [] if missed else [own], missed
    windows, missed = [], False
    start_us = each.time_us // window.slide_us * window.slide_us
    while start_us + window.size_us > each.time_us:
        end_us = start_us + window.size_us
        if end_us + window.allowed_lateness_us <= each.bound_us:
            missed = True
        else:
            windows.append(Window(start_us, end_us))
        start_us -= window.slide_us
    return windows, missed


def _results(keyed: KeyedOperator, left: list[Any], right: list[Any]) -> list[object]:
    if isinstance(keyed, WindowJoin):
        ones = left or ([None] if keyed.right_outer else [])
        others = right or ([None] if keyed.left_outer else [])
        return [keyed.function(one, other) for one in ones for other in others]
    assert isinstance(keyed, (WindowFold, SessionFold))
    return [_folded(keyed.fold, left)]


def _sessions(values: list[tuple[int, Any]], gap_us: int) -> Iterable[tuple[Window, list[Any]]]:
    members: list[tuple[int, Any]] = []
    for time_us, value in sorted(values, key=lambda pair: pair[0]):
        if members and time_us >= members[-1][0] + gap_us:
            yield Window(members[0][0], members[-1][0] + gap_us), [value for _, value in members]
            members = []
        members.append((time_us, value))
    if members:
        yield Window(members[0][0], members[-1][0] + gap_us), [value for _, value in members]


def _folded(fold: Fold, values: list[Any]) -> object:
    accumulator = fold.first(values[0])
    for value in values[1:]:
        accumulator = fold.add(accumulator, value)
    return fold.result(accumulator)

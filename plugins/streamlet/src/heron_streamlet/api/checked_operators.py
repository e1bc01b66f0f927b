"""What an author gives to a method of a stream becomes an operator, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import TopologyError, known, nearest
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.failures import RULES
from heron_streamlet.plan.operators import (
    AssignEventTime,
    Early,
    Keyed,
    Log,
    Operator,
    Pass,
    Read,
    Repartition,
    Union,
    Windowed,
    Write,
)
from heron_streamlet.windowing.fold import Count, Fold
from heron_streamlet.windowing.keyed_operators import (
    CountFold,
    Distinct,
    KeyedOperator,
    SessionFold,
    WindowFold,
    WindowJoin,
)
from heron_streamlet.windowing.window import CountWindow, Duration, SessionWindow, SlidingWindow, micros

__all__ = [
    "DAY_S",
    "called",
    "checked_conditions",
    "early",
    "event_time",
    "joined",
    "rule",
    "windowed",
    "write",
]

DAY_S = 86_400.0
"""How far in the future an event time may be, if the author does not say."""


def called(function: Any, method: str) -> Callable[..., Any]:  # noqa: ANN401  # authors break annotations
    """A function of an author.

    Raises:
        TopologyError: when it cannot be called.
    """
    if not callable(function):
        msg = f"{method}: {short_text(function, 60)} cannot be called; give a function"
        raise TopologyError(msg)
    found: Callable[..., Any] = function
    return found


def rule(found: object, operator: Operator) -> str:
    """The rule of an operator for records that fail in it.

    Raises:
        TopologyError: when it is no rule, or no function of an author runs in the operator.
    """
    place = f"{operator.word}: on_error={short_text(found, 60)}"
    if not isinstance(found, str) or found not in RULES:
        near = nearest(found, RULES) if isinstance(found, str) else ""
        msg = f"{place} is not one of {known(RULES)}{near}"
        raise TopologyError(msg)
    if isinstance(operator, Read):
        msg = f"{place}: no record fails in a source; set topology.on.error, or on_error of the step that fails"
        raise TopologyError(msg)
    if not _runs_function(operator):
        msg = f"{place}: no function of yours runs in this step, so no record fails in it; set the rule of another step"
        raise TopologyError(msg)
    return found


def _runs_function(operator: Operator) -> bool:
    if isinstance(operator, Repartition):
        return operator.function is not None
    if isinstance(operator, (Keyed, Windowed)):
        counts = isinstance(getattr(operator.operator, "fold", None), Count)  # columns have folds of their own
        return not (counts or isinstance(operator.operator, Distinct))
    return not isinstance(operator, (Union, Pass, Log, Early))


def checked_conditions(conditions: Mapping[str, Callable[[Any], object]]) -> Mapping[str, Callable[[Any], object]]:
    """The conditions of `Streamlet.split`.

    Raises:
        TopologyError: when they are not a mapping.
    """
    if not is_a(conditions, Mapping):
        msg = f"split: {short_text(conditions, 60)} is not a dict; give {{'name': condition}}"
        raise TopologyError(msg)
    return conditions


def event_time(
    function: Callable[[Any], object],
    lag: Duration,
    idle_after: Duration | None,
    max_ahead: Duration | None,
    *,
    columns: bool = False,
) -> AssignEventTime:
    """The operator of `Streamlet.event_time`; with `columns`, that of `ColumnStreamlet.event_time`.

    Raises:
        UsageError: when a duration is wrong.
    """
    return AssignEventTime(
        function,
        micros(lag, "event_time: lag", zero=True),
        None if idle_after is None else micros(idle_after, "event_time: idle_after"),
        None if max_ahead is None else micros(max_ahead, "event_time: max_ahead"),
        columns,
    )


def windowed(window: object, fold: Fold, kind: str, *, whole: bool = False) -> Keyed | Windowed:
    """The operator that folds windows; with `whole` those of the whole stream, which cannot be windows of count.

    Raises:
        TopologyError: when `window` is not a window for it.
    """
    if isinstance(window, CountWindow) and not whole:
        return Keyed(CountFold(window, fold), kind)
    if isinstance(window, SlidingWindow):
        operator: KeyedOperator = WindowFold(window, fold, not whole)
    elif isinstance(window, SessionWindow):
        operator = SessionFold(window, fold, not whole)
    else:
        msg = (
            f"{kind}: {short_text(window, 60)} is not a window for it; give tumbling_window, sliding_window, "
            "session_window"
        )
        raise TopologyError(msg)
    return Windowed(operator, window, kind, whole)


def joined(window: object, function: object, *, left_outer: bool = False, right_outer: bool = False) -> Windowed:
    """The operator that joins two streams by key and window.

    Raises:
        TopologyError: when `window` is not a window for it, or the function cannot be called.
    """
    if not isinstance(window, SlidingWindow):
        msg = f"join: {short_text(window, 60)} is not a window for it; give tumbling_window or sliding_window"
        raise TopologyError(msg)
    return Windowed(WindowJoin(window, called(function, "join"), left_outer, right_outer), window, "join")


def early(every: object) -> Early:
    """The operator that reads the early results of windows.

    Raises:
        UsageError: when `every` is not a duration.
    """
    return Early(micros(every, "early: every"))


def write(sink: object) -> Write:
    """The operator that writes to a sink.

    Raises:
        TopologyError: when `sink` is not a `Sink`.
    """
    if not isinstance(sink, Sink):
        msg = f"to_sink({short_text(sink, 60)}): not a Sink; for a function use consume"
        raise TopologyError(msg)
    return Write(sink)

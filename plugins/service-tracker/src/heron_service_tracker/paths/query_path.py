"""The answers to queries: typed, and as Heron Tracker gives them."""

from __future__ import annotations

from statistics import fmean

import msgspec

from heron_service_tracker.answers.answer_parts import page, plans_of
from heron_service_tracker.answers.heron_answers import instance_names
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.history.series import TASK_METRICS
from heron_service_tracker.observed.observed import ObservedTopology, age_s
from heron_service_tracker.paths.parameters import Parameter, Values
from heron_service_tracker.query.expression import MOST_CHARACTERS, Read, parse_query
from heron_service_tracker.query.task_history import TaskHistory, minutes_between
from heron_service_tracker.query.timelines import MINUTE_S, Timeline, evaluated
from heron_service_tracker.request_errors import MalformedQueryError, NotYetKnownError

__all__ = [
    "QUERY_PARAMETERS",
    "QueryAnswer",
    "QueryLine",
    "QueryPoint",
    "heron_interval",
    "heron_query",
    "heron_timeline",
    "query_answer",
]

_LATEST = 10**11  # the year 5138
_LONGEST_S = 14 * 86400  # as long as the history of a minute is kept

QUERY_PARAMETERS = (
    Parameter("query", f"the query, of at most {MOST_CHARACTERS} characters", required=True),
    Parameter("start", "seconds since 1970", "integer", None, 0, _LATEST, required=True),
    Parameter("end", "seconds since 1970", "integer", None, 0, _LATEST, required=True),
    Parameter("limit", "the greatest number of items", "integer", 100, 1, 1000),
    Parameter("offset", "the number of items to leave out", "integer", 0, 0, 10**9),
)


class QueryPoint(msgspec.Struct, frozen=True):
    """The value of the minute that begins then, in seconds since 1970."""

    at_s: int
    value: float


class QueryLine(msgspec.Struct, frozen=True):
    """A timeline of an instance, or of an expression over several (""); a minute without a value has no point."""

    instance: str
    points: tuple[QueryPoint, ...]


class QueryAnswer(msgspec.Struct, frozen=True):
    """A page of the timelines of a query. `error` says why nothing is recorded now."""

    start_s: int
    end_s: int
    step_s: int
    items: tuple[QueryLine, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


def query_answer(topology: ObservedTopology, recorder: Recorder | None, values: Values, now_s: float) -> QueryAnswer:
    """Evaluate a query; it may wait for the disk. `now_s` is monotonic.

    Raises:
        MalformedQueryError: when the query or the times are malformed, or it reads too much.
        NotYetKnownError: when the tracker keeps no history, or the plans were not read yet.
        UnknownPlaceError: when a component or an instance does not exist.
        StoreError: when the history cannot be read.
    """
    start, end = values.integer("start"), values.integer("end")
    found = _timelines(topology, recorder, values.text("query"), start, end)
    lines = [QueryLine(each.instance, tuple(QueryPoint(*point) for point in each.minutes.items())) for each in found]
    items, after = page(lines, values.integer("offset"), values.integer("limit"))
    error = recorder.error if recorder else ""
    return QueryAnswer(start, end, MINUTE_S, items, len(lines), after, age_s(topology.observed_at_s, now_s), error)


def heron_query(topology: ObservedTopology, recorder: Recorder | None, values: Values) -> object:
    """As `query_answer`, as Heron Tracker shows it."""
    start, end = values.integer("starttime"), values.integer("endtime")
    found = _timelines(topology, recorder, values.text("query"), start, end)
    timeline = []
    for each in found:
        data = {str(at): value for at, value in each.minutes.items()}
        timeline.append({"instance": each.instance, "data": data} if each.instance else {"data": data})
    return {"starttime": start, "endtime": end, "timeline": timeline}


def heron_timeline(topology: ObservedTopology, recorder: Recorder | None, values: Values) -> object:
    """The values of metrics by minute and instance, as Heron Tracker shows them."""
    start, end, component = values.integer("starttime"), values.integer("endtime"), values.text("component")
    history = _history(topology, recorder, start, end)
    instances = values.texts("instance") or ("*",)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for metric in values.texts("metricname") or TASK_METRICS:
        by_instance = found.setdefault(metric, {})
        for instance in instances:
            for each in history.read(Read(component, instance, metric)):
                minutes = {str(at): f"{value:.15g}" for at, value in each.minutes.items()}
                by_instance[each.instance or instance] = minutes
    return {"component": component, "starttime": start, "endtime": end, "timeline": found}


def heron_interval(topology: ObservedTopology, recorder: Recorder | None, values: Values, now_s: float) -> object:
    """What was counted in the last `interval` seconds, in whole minutes; of levels the means. `now_s` is wall-clock."""
    interval, component = values.number("interval"), values.text("component")
    end = int(now_s) // MINUTE_S * MINUTE_S - MINUTE_S  # the last minute that has ended
    start = end - max(MINUTE_S, int(interval)) + MINUTE_S
    history = _history(topology, recorder, start, end)
    wanted = values.texts("instance")
    found: dict[str, dict[str, str]] = {}
    for metric in values.texts("metricname") or TASK_METRICS:
        for each in history.read(Read(component, "*", metric)):
            if each.minutes and (not wanted or each.instance in wanted):
                join = sum if history.counts(metric) else fmean
                found.setdefault(metric, {})[each.instance] = f"{join(each.minutes.values()):.15g}"
    return {"component": component, "interval": int(interval), "metrics": found}


def _timelines(
    topology: ObservedTopology, recorder: Recorder | None, query: str, start: int, end: int
) -> list[Timeline]:
    expression = parse_query(query)
    history = _history(topology, recorder, start, end)
    return evaluated(expression, minutes_between(start, end), history.read)


def _history(topology: ObservedTopology, recorder: Recorder | None, start: int, end: int) -> TaskHistory:
    if recorder is None:
        msg = "this tracker keeps no history; start it without --without-history"
        raise NotYetKnownError(msg)
    if not start <= end <= start + _LONGEST_S:
        msg = f"the times from {start} to {end} are not 0 to {_LONGEST_S} s"
        raise MalformedQueryError(msg)
    plans = plans_of(topology)
    components = (each.name for each in plans.definition.components)
    return TaskHistory(recorder.for_reader(), topology, instance_names(plans), components, minutes_between(start, end))

"""The path of the history: its parameters and its answer."""

from __future__ import annotations

from heron.driver_kit.redaction import redact_for_command
from heron.errors import StoreError
from heron.spi.metricsink import OF_AUTHORS
from heron_service_tracker.answers.answers import EventItem, HistoryAnswer, PointItem, SeriesItem
from heron_service_tracker.history.buckets import resolution_for
from heron_service_tracker.history.history_file import SeriesPoints
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.history.series import METRICS
from heron_service_tracker.observed.engine_metrics import ENGINE_METRICS, MANAGER_METRICS, OF_ENGINE
from heron_service_tracker.paths.parameters import Parameter, Values
from heron_service_tracker.request_errors import MalformedQueryError, NotYetKnownError, UnknownPlaceError
from heron_service_tracker.watches.observations import Observations

__all__ = ["HISTORY_PARAMETERS", "history_answer"]

_LAST_S = 15 * 60
_MOST_POINTS = 2000  # of a series: a chart has fewer columns
_MOST_TASKS = 16  # lines that a person can tell apart, and half a second of reading
_LATEST = 10**11  # the year 5138

HISTORY_PARAMETERS = (
    Parameter("component", "only this component, or stream manager, such as stmgr-1"),
    Parameter("task", "these tasks instead of the sums over tasks, at most 16", "integer", None, 1, 10**9, many=True),
    Parameter(
        "metric",
        f"one of {', '.join(METRICS)}, {OF_AUTHORS}NAME of one that the author registers, or {OF_ENGINE}NAME of the "
        f"engine's {', '.join(ENGINE_METRICS)}, of a stream manager {', '.join(sorted(MANAGER_METRICS))}; without it, "
        "all but the last",
    ),
    Parameter("start", "seconds since 1970; without it, 15 minutes before the end", "integer", None, 0, _LATEST),
    Parameter("end", "seconds since 1970; without it, now", "integer", None, 0, _LATEST),
    Parameter(
        "step", "the length of a point in seconds; without it, the shortest that is kept", "integer", None, 1, 86400
    ),
)


def history_answer(
    observations: Observations, recorder: Recorder | None, place: tuple[str, str], values: Values
) -> HistoryAnswer:
    """Read the history of a topology; it may wait for the disk.

    Raises:
        MalformedQueryError: when the metric does not exist, there are more than 16 tasks, or the times make more than
            2000 points.
        NotYetKnownError: when the tracker keeps no history.
        UnknownPlaceError: when the cluster is unknown, or the topology is neither there nor in the history.
        StoreError: when the file cannot be read.
    """
    cluster, topology = place
    known = topology in observations.cluster(cluster).topologies
    if recorder is None:
        msg = "this tracker keeps no history; start it without --without-history"
        raise NotYetKnownError(msg)
    metric, task_ids = values.text("metric"), tuple(dict.fromkeys(map(int, values.texts("task")))) or (0,)
    if len(task_ids) > _MOST_TASKS:
        msg = f"parameter 'task' names {len(task_ids)} tasks, more than {_MOST_TASKS}; ask for fewer at once"
        raise MalformedQueryError(msg)
    if metric and metric not in METRICS and not metric.startswith((OF_AUTHORS, OF_ENGINE)):
        names = f"{', '.join(METRICS)}, {OF_AUTHORS}NAME, {OF_ENGINE}NAME"
        msg = f"parameter 'metric': {metric[:100]!r} is unknown; known: {names}"
        raise MalformedQueryError(msg)
    now_s = observations.clock.wall_s()
    end = int(values.number("end", now_s + 1))
    start = int(values.number("start", end - _LAST_S))
    resolution = resolution_for(start, now_s, of_tasks=task_ids != (0,))
    shortest = max(1, -(-(end - start) // _MOST_POINTS))
    wanted = int(values.number("step", max(shortest, resolution.step_s)))
    step_s = -(-max(wanted, resolution.step_s) // resolution.step_s) * resolution.step_s
    if start >= end or step_s < shortest:
        msg = f"start {start} and end {end} with steps of {step_s} s are not 1 to {_MOST_POINTS} points"
        raise MalformedQueryError(msg)
    found, prometheus_error = list[SeriesPoints](), ""
    for task_id in task_ids:
        key = (cluster, topology, values.text("component"), task_id, metric)
        of_task, why = _read(recorder, key, (step_s, resolution.step_s), start, end)
        found += of_task
        prometheus_error = prometheus_error or why
    if not found and not known:
        msg = f"cluster {cluster!r} has no topology {topology!r}, and the history has none of that name"
        raise UnknownPlaceError(msg)
    series = tuple(
        SeriesItem(
            each.series.component,
            each.series.task_id,
            each.series.metric,
            tuple(PointItem(point.at_s, point.value, point.most) for point in each.points),
        )
        for each in found
    )
    newest = max((each.points[-1].at_s + step_s for each in found if each.points), default=now_s)
    events = tuple(
        EventItem(each.number, each.at_s, each.kind, each.subject, each.text)
        for each in recorder.file.read_events(cluster, topology, start, end)
    )
    age_s = round(max(0.0, now_s - newest), 3)
    return HistoryAnswer(start, end, step_s, series, events, age_s, recorder.error, prometheus_error)


def _read(
    recorder: Recorder, key: tuple[str, str, str, int, str], steps: tuple[int, int], start: int, end: int
) -> tuple[list[SeriesPoints], str]:
    """The series, and why those of Prometheus are missing. A Prometheus that is away leaves those of the file."""
    own = recorder.for_reader().read(key, *steps, start, end)
    prometheus = recorder.prometheus.get(key[0])
    if prometheus is None:
        return own, ""
    try:
        found = prometheus.read(key, steps[0], start, end)
    except StoreError as error:
        return own, redact_for_command(str(error))
    there = {(each.series.component, each.series.metric) for each in found if each.points}
    return [*found, *(each for each in own if (each.series.component, each.series.metric) not in there)], ""

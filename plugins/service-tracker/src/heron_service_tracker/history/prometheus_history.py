"""History from a Prometheus that scrapes the topologies of a profile.

Prometheus keeps more than this tracker, and longer. Its `rate` knows where a counter begins again.
"""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable

import msgspec

from heron.clock import monotonic_s
from heron.errors import StoreError
from heron.spi.typed_values import decode_json
from heron_service_tracker.history.history_file import Point, SeriesPoints
from heron_service_tracker.history.series import Series

__all__ = ["PROMETHEUS_METRICS", "PrometheusHistory"]

_TIMEOUT_S = 10.0  # of all queries of one request
_AWAY_S = 30.0  # after a failure, requests do not wait for the server
_MOST_BYTES = 64 * 1024 * 1024
_LEAST_RATE_S = 60  # of a rate: two scrapes have to be in it
_LATENCIES = '{{__name__=~"heron_(execute|complete)_latency_seconds_{part}",{chosen}}}'

_COUNTER = "sum by ({by}) (rate(heron_{name}_total{{{chosen}}}[{window}s]))"
_BUCKETS = f"sum by ({{by}}, le) (rate({_LATENCIES.replace('{part}', 'bucket')}[{{window}}s]))"
_BUSY = (
    'sum by ({by}) (rate(heron_task_time_seconds_total{{use=~"user-cpu|user-blocked|engine",{chosen}}}[{window}s]))'
    " / count by ({by}) (count by (component, task) (heron_task_time_seconds_total{{{chosen}}}))"
)
_QUERIES = {
    **{f"{each}-count": _COUNTER.replace("{name}", f"{each}_count") for each in ("emit", "execute", "ack", "fail")},
    "queue-bytes": "sum by ({by}) (heron_in_queue_bytes{{{chosen}}})",
    "latency-s": (
        "sum by ({by}) (rate(heron_execute_latency_seconds_sum{{{chosen}}}[{window}s]))"
        " / sum by ({by}) (rate(heron_execute_latency_seconds_count{{{chosen}}}[{window}s]))"
    ),
    "latency-p50-s": f"histogram_quantile(0.5, {_BUCKETS})",
    "latency-p99-s": f"histogram_quantile(0.99, {_BUCKETS})",
    "busy": _BUSY,
    "gc-share": "avg by ({by}) (rate(heron_gc_pause_seconds_total{{{chosen}}}[{window}s]))",
    "resident-bytes": "sum by ({by}) (heron_resident_bytes{{{chosen}}})",
}

PROMETHEUS_METRICS = frozenset(_QUERIES)
"""The metrics of the history that Prometheus has; the others are in the file of the tracker."""


class _Matrix(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Matrix]


class _Answer(msgspec.Struct):
    data: _Data


class PrometheusHistory:
    """One server, of which only the range query is used; for any thread. `now_s` is monotonic."""

    def __init__(self, server: str, now_s: Callable[[], float] = monotonic_s) -> None:
        self.server = server.rstrip("/")
        self._now_s = now_s
        self._error = ""
        self._away_until_s = float("-inf")

    def read(self, wanted: Iterable[str | int], step_s: int, start: int, end: int) -> list[SeriesPoints]:
        """Return the points of series between two times (seconds since 1970, `end` excluded).

        `wanted` is as of `HistoryFile.read`, without `EVERY_TASK`. A point has the value at its end.

        Raises:
            StoreError: when the server does not answer within 10 s, or with something else; for 30 s after that.
        """
        now_s = self._now_s()
        if now_s < self._away_until_s:
            raise StoreError(self._error)
        if self._error:
            self._away_until_s = now_s + _AWAY_S  # one request finds out whether the server is back
        try:
            found = self._read(wanted, step_s, start, end, now_s + _TIMEOUT_S)
        except StoreError as error:
            self._error, self._away_until_s = str(error), self._now_s() + _AWAY_S
            raise
        self._error, self._away_until_s = "", float("-inf")
        return found

    def _read(
        self, wanted: Iterable[str | int], step_s: int, start: int, end: int, until_s: float
    ) -> list[SeriesPoints]:
        cluster, topology, component, task_id, metric = wanted
        found: list[SeriesPoints] = []
        for name in sorted(PROMETHEUS_METRICS):
            if metric in ("", name):
                key = (str(cluster), str(topology), str(component), int(task_id), name)
                found += self._series(Series(*key), step_s, start, end, until_s)
        return sorted(found, key=lambda each: (each.series.component, each.series.metric))

    def _series(self, wanted: Series, step_s: int, start: int, end: int, until_s: float) -> list[SeriesPoints]:
        chosen = [f"topology={json.dumps(wanted.topology, ensure_ascii=False)}", 'component!=""']
        if wanted.component:
            chosen.append(f"component={json.dumps(wanted.component, ensure_ascii=False)}")
        if wanted.task_id:
            chosen.append(f'task="{wanted.task_id}"')
        query = _QUERIES[wanted.metric].format(
            by="component", chosen=",".join(chosen), window=max(step_s, _LEAST_RATE_S)
        )
        found = []
        for each in self._ask(query, step_s, start + step_s, end, until_s):
            points = [(int(at_s) - step_s, float(text)) for at_s, text in each.values]
            known = tuple(Point(at, value, value, value * step_s) for at, value in points if math.isfinite(value))
            component = each.metric.get("component", "")
            series = Series(wanted.cluster, wanted.topology, component, wanted.task_id, wanted.metric)
            found.append(SeriesPoints(series, known))
        return found

    def _ask(self, query: str, step_s: int, start: int, end: int, until_s: float) -> list[_Matrix]:
        first = -(-start // step_s) * step_s
        if first > end:
            return []
        words = urllib.parse.urlencode({"query": query, "start": first, "end": end, "step": step_s})
        left_s = max(0.001, until_s - self._now_s())
        try:
            with urllib.request.urlopen(f"{self.server}/api/v1/query_range?{words}", timeout=left_s) as answer:  # noqa: S310  # the option allows http and https
                body = answer.read(_MOST_BYTES)
            return decode_json(body, _Answer).data.result
        except (OSError, http.client.HTTPException, msgspec.MsgspecError) as error:
            msg = f"the history of Prometheus at {self.server}: {error}"
            raise StoreError(msg) from error

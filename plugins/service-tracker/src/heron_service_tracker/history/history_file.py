"""The SQLite file of the history.

One thread writes, in transactions of a write-ahead log; readers see one instant and wait for nobody. The size of the
file has a bound, below which the oldest points of every resolution make room: first those of the engine's metrics by
name that are older than a day. Events have a part of it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir
from heron.errors import StoreError
from heron_service_tracker.history.buckets import RESOLUTIONS, Bucket, Resolution
from heron_service_tracker.history.series import Series, SeriesGroup
from heron_service_tracker.observed.engine_metrics import OF_ENGINE
from heron_service_tracker.observed.observed import ObservedEvent

__all__ = ["EVERY_TASK", "HistoryFile", "Point", "SeriesPoints", "StoredEvent"]

_SCHEMA = """
create table if not exists series (id integer primary key, cluster text, topology text, component text, task integer,
    metric text, unique (cluster, topology, component, task, metric));
create table if not exists points_1 (series integer, at integer, total real, weight real, most real,
    primary key (series, at)) without rowid;
create table if not exists points_10 (series integer, at integer, total real, weight real, most real,
    primary key (series, at)) without rowid;
create table if not exists points_60 (series integer, at integer, total real, weight real, most real,
    primary key (series, at)) without rowid;
create table if not exists events (number integer primary key, cluster text, topology text, at real, kind text,
    subject text, text text);
create index if not exists events_by_time on events (cluster, topology, at);
"""
_BUSY_S = 5.0
_PAGE_BYTES = 4096
EVERY_TASK = -1
"""For `HistoryFile.read`: all tasks, and not the sums over them."""

_FULL = 0.8  # of the bound: then the oldest points make room, before the file cannot grow
_EVENTS_SHARE = 1 / 8  # of the bound: a crash loop must not wipe the points
_EVENT_BYTES = 750  # with the longest text
_LONGEST_TEXT = 500  # characters of an event; the log has the whole of an error
_ROUNDS = 20  # of making room; each removes a tenth of the time
_ENGINE_S = 86400  # of what only a metric's name chooses: older points of it make room before any others
_OVERDUE = 0.05  # of the time that points are kept: so much longer they may stay, because looking for them has a cost


@dataclass(frozen=True, slots=True)
class Point:
    """One step: its start in seconds since 1970, the mean, the greatest value, and the sum of increments."""

    at_s: int
    value: float
    most: float
    total: float


@dataclass(frozen=True, slots=True)
class SeriesPoints:
    """A series and its points, oldest first."""

    series: Series
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a topology, whose place is the cluster and the name."""

    place: tuple[str, str]
    event: ObservedEvent


class HistoryFile:
    """The file. `write`, `prune` and `close` are for one thread; `read` is for any thread.

    Every method raises `StoreError` when SQLite or the disk refuses; a write that fails leaves no part of itself.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._connection: sqlite3.Connection | None = None
        self._ids: dict[SeriesGroup, list[int]] = {}  # 0 for a series without points
        self._pruned_s: dict[int, float] = {}
        self._reading = threading.Lock()

    def write(
        self, buckets: Mapping[tuple[int, int], Mapping[SeriesGroup, Bucket]], events: Sequence[StoredEvent] = ()
    ) -> None:
        """Add buckets to those of the same time, and events, in one transaction."""
        with self._translated(), self._transaction() as connection:
            rows: dict[int, list[tuple[float, ...]]] = {}
            for (step_s, start), by_group in buckets.items():
                of_step = rows.setdefault(step_s, [])
                for group, bucket in by_group.items():
                    ids = self._ids_of(connection, group, bucket)
                    of_step += [
                        (number, start, total, weight, most)
                        for number, total, weight, most in zip(
                            ids, bucket.totals, bucket.weights, bucket.most, strict=True
                        )
                        if weight
                    ]
            for step_s, of_step in rows.items():
                of_step.sort()  # in the order of the table, because the points of a series share a page
                connection.executemany(_UPSERTS[step_s], of_step)
            connection.executemany(_NEW_EVENT, map(_event_row, events))

    def prune(self, now_s: float) -> None:
        """Remove points and events that are not kept any more, and make room when the file comes near its bound."""
        with self._translated():
            for each in RESOLUTIONS:
                if abs(now_s - self._pruned_s.get(each.step_s, 0.0)) >= _OVERDUE * each.kept_s:
                    self._pruned_s[each.step_s] = now_s
                    self._remove_before(each, int(now_s) - each.kept_s)
            with self._transaction() as connection:
                most = int(_EVENTS_SHARE * self._most_bytes / _EVENT_BYTES)
                connection.execute(_OLD_EVENTS, (now_s - RESOLUTIONS[-1].kept_s, most))
            for _ in range(_ROUNDS):
                if self._used_bytes() <= _FULL * self._most_bytes:
                    break
                self._make_room(now_s)

    def read(
        self, wanted: Iterable[str | int], step_s: int, resolution_s: int, start: int, end: int
    ) -> list[SeriesPoints]:
        """Return the points of series between two times (seconds since 1970, `end` excluded).

        `wanted` are cluster, topology, component, task and metric; "" for component and metric means every one, and so
        does `EVERY_TASK` for the task. Those of the engine that are kept by their names are read by name only.
        """
        if not self._path.exists():
            return []
        cluster, topology, component, task_id, metric = wanted
        with self._reading, self._translated(), contextlib.closing(self._opened(read_only=True)) as connection:
            found: list[SeriesPoints] = []
            key = (cluster, topology, component, component, task_id, task_id, metric, metric)
            series = connection.execute(_SERIES, key)
            for number, *key in series.fetchall():
                rows = connection.execute(_POINTS[resolution_s], (step_s, step_s, number, start, end))
                points = tuple(Point(at, total / weight, most, total) for at, total, weight, most in rows if weight > 0)
                found.append(SeriesPoints(Series(*key), points))
            return found

    def read_events(self, cluster: str, topology: str, start: int, end: int) -> list[ObservedEvent]:
        """Return the events of a topology between two times, oldest first; of more than 1,000 the newest."""
        if not self._path.exists():
            return []
        with self._reading, self._translated(), contextlib.closing(self._opened(read_only=True)) as connection:
            if connection.execute("select 1 from sqlite_master where name = 'events'").fetchone() is None:
                return []  # an older tracker made the file
            rows = connection.execute(_EVENTS, (cluster, topology, start, end)).fetchall()
            return [ObservedEvent(*row) for row in reversed(rows)]

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _ids_of(self, connection: sqlite3.Connection, group: SeriesGroup, bucket: Bucket) -> list[int]:
        """The numbers of the series; those that the bucket is the first to have a point of are new."""
        known = self._ids.get(group)
        if known is None:
            known = self._ids[group] = [0] * len(group.metrics)
        for place, weight in enumerate(bucket.weights):
            if weight and not known[place]:
                key = (*group[:4], group.metrics[place])
                connection.execute(_NEW_SERIES, key)
                (number,) = connection.execute(_SERIES_ID, key).fetchone()
                known[place] = int(number)
        return known

    def _remove_before(self, resolution: Resolution, at: int, chosen: str = "") -> None:
        """Remove points, and series that have none any more: the longest resolution has points of every series."""
        with self._transaction() as connection:
            known = connection.execute(chosen or _SERIES_WITH[resolution.of_tasks]).fetchall()
            for (number,) in known:
                connection.execute(_REMOVES[resolution.step_s], (number, at))
            if resolution is RESOLUTIONS[-1] and connection.execute(_UNUSED).rowcount:
                self._ids.clear()

    def _make_room(self, now_s: float) -> None:
        connection = self._writer()
        last = RESOLUTIONS[-1]
        (oldest,) = connection.execute(_OLDEST_OF_ENGINE).fetchone()
        if oldest is not None and now_s - oldest > _ENGINE_S:
            self._remove_before(last, int(oldest + (now_s - oldest) / 10), _SERIES_OF_ENGINE)
            return
        for each in RESOLUTIONS:
            (oldest,) = connection.execute(_OLDEST[each.step_s]).fetchone()
            if oldest is not None:
                self._remove_before(each, int(oldest + max(each.step_s, (now_s - oldest) / 10)))

    def _used_bytes(self) -> int:
        connection = self._writer()
        (pages,) = connection.execute("pragma page_count").fetchone()
        (free,) = connection.execute("pragma freelist_count").fetchone()
        return int(pages - free) * _PAGE_BYTES

    def _writer(self) -> sqlite3.Connection:
        if self._connection is None:
            make_private_dir(self._path.parent)
            connection = self._opened(read_only=False)
            try:
                connection.execute(f"pragma page_size = {_PAGE_BYTES}")
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = normal")
                connection.execute(f"pragma max_page_count = {max(64, self._most_bytes // _PAGE_BYTES)}")
                connection.execute(f"pragma journal_size_limit = {self._most_bytes // 8}")
                connection.executescript(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._path.chmod(0o600)
            self._connection = connection
        return self._connection

    def _opened(self, *, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        location = f"{self._path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(location, _BUSY_S, isolation_level=None, check_same_thread=False, uri=True)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._writer()
        connection.execute("begin immediate")
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            self._ids.clear()  # series of this transaction do not exist
            with contextlib.suppress(sqlite3.Error):  # a full disk may have ended the transaction
                connection.execute("rollback")
            raise

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            msg = f"the history {self._path}: {error}"
            raise StoreError(msg) from error


def _event_row(stored: StoredEvent) -> tuple[object, ...]:
    _, at_s, kind, subject, text = astuple(stored.event)
    return (*stored.place, at_s, kind, subject, text[:_LONGEST_TEXT])


_STEPS = tuple(each.step_s for each in RESOLUTIONS)
_KEY = "cluster = ? and topology = ? and component = ? and task = ? and metric = ?"
_NEW_SERIES = "insert or ignore into series (cluster, topology, component, task, metric) values (?, ?, ?, ?, ?)"
_SERIES_ID = f"select id from series where {_KEY}"  # noqa: S608 - a constant
_SERIES = (
    "select id, cluster, topology, component, task, metric "  # noqa: S608 - a constant
    "from series where cluster = ? and topology = ? and "
    "(? = '' or component = ?) and (task = ? or (? = -1 and task > 0)) and "
    f"(metric = ? or (? = '' and metric not like '{OF_ENGINE}%')) "
    "order by component, task, metric limit 10000"
)
_SERIES_WITH = {False: "select id from series where task = 0", True: "select id from series"}
_SERIES_OF_ENGINE = f"select id from series where metric like '{OF_ENGINE}%'"  # noqa: S608 - a constant
_UPSERTS = {
    step: f"insert into points_{step} values (?, ?, ?, ?, ?) on conflict do update set "  # noqa: S608 - a constant
    "total = total + excluded.total, weight = weight + excluded.weight, most = max(most, excluded.most)"
    for step in _STEPS
}
_REMOVES = {step: f"delete from points_{step} where series = ? and at < ?" for step in _STEPS}  # noqa: S608
_OLDEST = {step: f"select min(at) from points_{step}" for step in _STEPS}  # noqa: S608
_OLDEST_OF_ENGINE = f"select min(at) from points_{_STEPS[-1]} where series in ({_SERIES_OF_ENGINE})"  # noqa: S608
_POINTS = {
    step: f"select at / ? * ? as start, sum(total), sum(weight), max(most) from points_{step} "  # noqa: S608
    "where series = ? and at >= ? and at < ? group by start order by start"
    for step in _STEPS
}
_NEW_EVENT = "insert into events (cluster, topology, at, kind, subject, text) values (?, ?, ?, ?, ?, ?)"
_EVENTS = (
    "select number, at, kind, subject, text from events where cluster = ? and topology = ? and at >= ? and at < ? "
    "order by number desc limit 1000"
)
_OLD_EVENTS = "delete from events where at < ? or number <= (select max(number) from events) - ?"
_OLDEST_EVENTS = (
    "delete from events where number <= (select min(number) + (max(number) - min(number)) / 10 from events)"
)
_USED = " and ".join(f"not exists (select 1 from points_{step} where series = id)" for step in _STEPS)  # noqa: S608
_UNUSED = f"delete from series where {_USED}"  # noqa: S608 - a constant

"""Keeps views in tables of a PostgreSQL database. A write is one transaction, and so is a reading.

A transaction that writes holds an advisory lock of its view: tasks that stage and publish share it, a change of the
batch or of the writers has it alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Self, TypeVar

from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore
from heron_driver_kit.view_names import check_batch, check_entries, check_key, check_view, later_batch, removed_batch
from heron_store_postgresql.database import Connection, Database
from heron_store_postgresql.options import PostgresqlOptions

__all__ = ["PostgresqlViewStore"]

T = TypeVar("T")

_STAGED, _VISIBLE, _REMOVED = 0, 1, 2
_BEFORE_ALL_US: Final = -(2**63)
_LAST_WRITER: Final = 2**63 - 1
_STATEMENT_BYTES: Final = 32 * 1024 * 1024  # the server keeps the values of a statement in memory

_WRITE: Final = b"begin"
_READ: Final = b"begin isolation level repeatable read read only"
_SHARED: Final = "select pg_advisory_xact_lock_shared(hashtextextended(current_schema || '.' || %s, 0))"
_ALONE: Final = "select pg_advisory_xact_lock(hashtextextended(current_schema || '.' || %s, 0))"

_STAGE: Final = """
insert into view_staged select %s, %s, %s, unnest(%b::bigint[]), unnest(%b::bytea[]), unnest(%b::bytea[])
on conflict (view, writer, version, span_us, key) do update set value = excluded.value
"""
# Rows are inserted in the order of the key, so that two writers never wait for each other.
_SHOW: Final = """
with moved as (
    delete from view_staged where view = %(view)s and writer between %(first)s and %(last)s and version <= %(version)s
    returning key, span_us, version, writer, value
)
insert into view_live (view, key, span_us, version, value)
select distinct on (key, span_us) %(view)s, key, span_us, version, value from moved where span_us >= %(start)s
order by key, span_us, version desc, writer desc
on conflict (view, key, span_us) do update set version = excluded.version, value = excluded.value
where view_live.version <= excluded.version
"""
_NOTE_TIME: Final = """
insert into view_writers values (%s, %s, %s)
on conflict (view, writer) do update set at_us = greatest(view_writers.at_us, excluded.at_us)
"""
_STAGE_BATCH: Final = """
insert into view_history select %s, unnest(%b::bytea[]), unnest(%b::bytea[])
on conflict (batch, key) do update set value = excluded.value
"""
_OTHERS: Final = "(select id from view_batches where view = %s and until_us <= %s and id <> %s)"
_KEYS: Final = """
(select key from view_history where batch = %(batch)s and key > %(after)b order by key limit %(limit)s)
union
(select distinct key from view_live where view = %(view)s and key > %(after)b and span_us >= %(start)s
 order by key limit %(limit)s)
order by key limit %(limit)s
"""


class PostgresqlViewStore(ViewStore):
    """Tables in a schema, for processes on every machine that can reach the server."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server", "shared"})
    options_type: ClassVar[type] = PostgresqlOptions

    def __init__(self, options: PostgresqlOptions) -> None:
        self._options = options
        self._database = Database(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects, and creates the tables if they do not exist."""
        return cls(decode_options(options, PostgresqlOptions, "store"))

    def check(self, timeout_s: float) -> str:
        """Log in, in a connection of its own."""
        with (
            self._database.translated("no connection"),
            contextlib.closing(self._database.connect(timeout_s)) as connection,
        ):
            version = connection.info.parameter_status("server_version") or ""
        return f"PostgreSQL {version.partition(' ')[0]} at {self._options.host}:{self._options.port}"

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """Insert the values, some megabytes at a time."""
        check_view(view)
        check_entries(view, ((key, value) for (_, key), value in values.items()))

        def work(tables: Connection) -> None:
            tables.execute(_SHARED, (view,))
            for rows in _pieces([(span_us, key, value) for (span_us, key), value in values.items()]):
                spans, keys, contents = (list(column) for column in zip(*rows, strict=True))
                tables.execute(_STAGE, (view, writer, version, spans, keys, contents))

        self._run(view, _WRITE, work)

    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """Move the values; times only grow, since a repetition may come late."""
        check_view(view)

        def work(tables: Connection) -> None:
            tables.execute(_SHARED, (view,))
            _show(tables, view, (writer, writer), version)
            tables.execute(_NOTE_TIME, (view, writer, at_us))

        self._run(view, _WRITE, work)

    def discard(self, view: str, writer: int, above: int) -> None:
        """Delete the values."""
        check_view(view)

        def work(tables: Connection) -> None:
            tables.execute(_SHARED, (view,))
            tables.execute(
                "delete from view_staged where view = %s and writer = %s and version > %s", (view, writer, above)
            )

        self._run(view, _WRITE, work)

    def retire(self, view: str, writers: int, version: int) -> None:
        """Move or delete the values, and delete the times."""
        check_view(view)

        def work(tables: Connection) -> None:
            tables.execute(_ALONE, (view,))
            _show(tables, view, (writers, _LAST_WRITER), version)
            tables.execute("delete from view_staged where view = %s and writer >= %s", (view, writers))
            tables.execute("delete from view_writers where view = %s and writer >= %s", (view, writers))

        self._run(view, _WRITE, work)

    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """Insert the values under the number of the batch: parts have no keys in common."""
        del part
        check_batch(view, batch)
        check_entries(view, values.items())

        def work(tables: Connection) -> None:
            tables.execute(_SHARED, (view,))
            number = _number(tables, view, batch)
            for rows in _pieces([(0, key, value) for key, value in values.items()] if number is not None else []):
                tables.execute(_STAGE_BATCH, (number, [key for _, key, _ in rows], [value for _, _, value in rows]))

        self._run(view, _WRITE, work)

    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """Count the parts; with the last one, change which batch is visible, and delete what it covers."""
        check_batch(view, batch)

        def work(tables: Connection) -> None:
            tables.execute(_ALONE, (view,))
            if (number := _number(tables, view, batch)) is None:
                return
            tables.execute("insert into view_parts values (%s, %s) on conflict do nothing", (number, part))
            ((complete,),) = tables.execute("select count(*) from view_parts where batch = %s", (number,))
            if complete >= parts:
                tables.execute("update view_batches set state = %s where id = %s", (_VISIBLE, number))
                _remove_covered(tables, view, number, batch.until_us)

        self._run(view, _WRITE, work)

    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """Look all keys up in one snapshot."""
        check_view(view)
        wanted = list(keys)
        for key in wanted:
            check_key(view, key)

        def work(tables: Connection) -> Reading:
            number, until_us = _visible(tables, view)
            start_us = _BEFORE_ALL_US if until_us is None else until_us
            history = tables.execute(
                "select key, value from view_history where batch = %s and key = any(%b)", (number, wanted), binary=True
            )
            values: dict[bytes, bytes] = dict(history.fetchall())
            live: dict[bytes, list[bytes]] = {}
            for key, value in tables.execute(
                "select key, value from view_live where view = %s and key = any(%b) and span_us >= %s order by span_us",
                (view, wanted, start_us),
                binary=True,
            ):
                live.setdefault(key, []).append(value)
            ((at_us,),) = tables.execute("select min(at_us) from view_writers where view = %s", (view,))
            return Reading(until_us, values, live, at_us)

        return self._run(view, _READ, work)

    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """Merge the keys of both tables; PostgreSQL compares bytea byte by byte."""
        check_view(view)

        def work(tables: Connection) -> list[bytes]:
            number, until_us = _visible(tables, view)
            start_us = _BEFORE_ALL_US if until_us is None else until_us
            place = {"view": view, "batch": number, "start": start_us, "after": after, "limit": limit}
            return [key for (key,) in tables.execute(_KEYS, place, binary=True)]

        return self._run(view, _READ, work)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def drop(self, view: str) -> None:
        """Delete all rows of the view."""
        check_view(view)

        def work(tables: Connection) -> None:
            tables.execute(_ALONE, (view,))
            of_view = "(select id from view_batches where view = %s)"
            for table in ("view_history", "view_parts"):
                tables.execute(f"delete from {table} where batch in {of_view}".encode(), (view,))  # noqa: S608
            for table in ("view_batches", "view_staged", "view_live", "view_writers"):
                tables.execute(f"delete from {table} where view = %s".encode(), (view,))  # noqa: S608

        self._run(view, _WRITE, work)

    def _run(self, view: str, begin: bytes, work: Callable[[Connection], T]) -> T:
        return self._database.transaction(f"view {view}", begin, work)


def _visible(tables: Connection, view: str) -> tuple[int | None, int | None]:
    """Return the number and the end of the visible batch, or None for both."""
    found = tables.execute("select id, until_us from view_batches where view = %s and state = %s", (view, _VISIBLE))
    number, until_us = found.fetchone() or (None, None)
    return number, until_us


def _show(tables: Connection, view: str, writers: tuple[int, int], version: int) -> None:
    """Move what these writers staged into the live values, except for spans that the batch covers."""
    _, until_us = _visible(tables, view)
    start_us = _BEFORE_ALL_US if until_us is None else until_us
    tables.execute(
        _SHOW, {"view": view, "first": writers[0], "last": writers[1], "version": version, "start": start_us}
    )


def _number(tables: Connection, view: str, batch: Batch) -> int | None:
    """Return the number of a batch that is not visible yet, a new one if necessary; None when it is visible."""
    _, until_us = _visible(tables, view)
    if until_us is not None and until_us > batch.until_us:
        raise later_batch(view, batch, until_us)
    name = (view, batch.until_us, batch.run)
    tables.execute("insert into view_batches (view, until_us, run) values (%s, %s, %s) on conflict do nothing", name)
    found = tables.execute("select id, state from view_batches where view = %s and until_us = %s and run = %s", name)
    number: int
    ((number, state),) = found
    if state == _REMOVED:
        raise removed_batch(view, batch)
    return number if state == _STAGED else None


def _remove_covered(tables: Connection, view: str, number: int, until_us: int) -> None:
    """Delete other batches that end no later, and earlier spans; remember which runs had the same end."""
    for table in ("view_history", "view_parts"):
        tables.execute(f"delete from {table} where batch in {_OTHERS}".encode(), (view, until_us, number))  # noqa: S608
    tables.execute("delete from view_batches where view = %s and until_us < %s", (view, until_us))
    tables.execute(
        "update view_batches set state = %s where view = %s and until_us = %s and id <> %s",
        (_REMOVED, view, until_us, number),
    )
    tables.execute("delete from view_live where view = %s and span_us < %s", (view, until_us))


def _pieces(rows: Sequence[tuple[int, bytes, bytes]]) -> Iterator[list[tuple[int, bytes, bytes]]]:
    """Divide rows of span, key and value, in the order of the key, into statements of a bounded size."""
    piece: list[tuple[int, bytes, bytes]] = []
    size_bytes = 0
    for row in sorted(rows, key=lambda row: (row[1], row[0])):
        if piece and size_bytes + len(row[2]) > _STATEMENT_BYTES:
            yield piece
            piece, size_bytes = [], 0
        piece.append(row)
        size_bytes += len(row[1]) + len(row[2])
    if piece:
        yield piece

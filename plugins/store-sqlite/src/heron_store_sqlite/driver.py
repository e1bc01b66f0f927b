"""Keeps each view in an SQLite file. A write is one transaction, and so is a reading."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

import msgspec

from heron.driver_kit.private_files import check_usable
from heron.errors import StoreError
from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore
from heron_driver_kit.os_errors import translated_os_errors
from heron_driver_kit.view_names import check_batch, check_entries, check_key, check_view, later_batch, removed_batch
from heron_store_sqlite.view_file import ViewFile

__all__ = ["SqliteOptions", "SqliteViewStore"]

_STAGED, _VISIBLE, _REMOVED = 0, 1, 2
_BEFORE_ALL_US: Final = -(2**63)

# Rows are moved in the order of their versions, so the newest of several staged values stays.
_SHOW = """
insert into live (key, span_us, version, value)
select key, span_us, version, value from staged
where writer between ? and ? and version <= ? and span_us >= ? order by version, writer
on conflict (key, span_us) do update set version = excluded.version, value = excluded.value
where live.version <= excluded.version
"""
_LAST_WRITER: Final = 2**63 - 1

_KEYS = """
select key from (select key from history where batch = :batch and key > :after order by key limit :limit)
union
select key from (select distinct key from live where key > :after and span_us >= :until order by key limit :limit)
order by key limit :limit
"""


class SqliteOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile. `folder` is where the files are; ``~`` is the user's home."""

    folder: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/views"


class SqliteViewStore(ViewStore):
    """A file ``VIEW.db`` below the folder, for the processes of one user on one machine."""

    spi_version: ClassVar[int] = 1
    options_type: ClassVar[type] = SqliteOptions

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, ViewFile] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the option `folder`. The folder is not created yet."""
        chosen = decode_options(options, SqliteOptions, "store")
        return cls(Path(os.path.abspath(Path(chosen.folder).expanduser())))

    def check(self, timeout_s: float) -> str:
        """Check that the folder is writable or can be created."""
        del timeout_s
        with translated_os_errors(StoreError, f"folder {self._folder}: cannot be used", "choose another store.folder"):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """Insert the values."""
        file = self._file(view)
        check_entries(view, ((key, value) for (_, key), value in values.items()))
        rows = ((writer, version, span_us, key, value) for (span_us, key), value in values.items())
        with file.writing() as tables:
            tables.executemany("insert or replace into staged values (?, ?, ?, ?, ?)", rows)

    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """Move the values; times only grow, since a repetition may come late."""
        with self._file(view).writing() as tables:
            _show(tables, writer, writer, version)
            tables.execute("delete from staged where writer = ? and version <= ?", (writer, version))
            tables.execute(
                "insert into writers values (?, ?) on conflict do update set at_us = max(at_us, excluded.at_us)",
                (writer, at_us),
            )

    def discard(self, view: str, writer: int, above: int) -> None:
        """Delete the values."""
        with self._file(view).writing() as tables:
            tables.execute("delete from staged where writer = ? and version > ?", (writer, above))

    def retire(self, view: str, writers: int, version: int) -> None:
        """Move or delete the values, and delete the times."""
        with self._file(view).writing() as tables:
            _show(tables, writers, _LAST_WRITER, version)
            tables.execute("delete from staged where writer >= ?", (writers,))
            tables.execute("delete from writers where writer >= ?", (writers,))

    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """Insert the values under the number of the batch: parts have no keys in common."""
        del part
        check_batch(view, batch)
        check_entries(view, values.items())
        with self._file(view).writing() as tables:
            if (number := _number(tables, view, batch)) is not None:
                rows = ((number, key, value) for key, value in values.items())
                tables.executemany("insert or replace into history values (?, ?, ?)", rows)

    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """Count the parts; with the last one, change which batch is visible, and delete what it covers."""
        check_batch(view, batch)
        with self._file(view).writing() as tables:
            if (number := _number(tables, view, batch)) is None:
                return
            tables.execute("insert or ignore into parts values (?, ?)", (number, part))
            (complete,) = tables.execute("select count(*) from parts where batch = ?", (number,)).fetchone()
            if complete >= parts:
                tables.execute("update batches set state = ? where id = ?", (_VISIBLE, number))
                _remove_covered(tables, number, batch.until_us)

    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """Look up key by key in one transaction."""
        wanted = list(keys)
        for key in wanted:
            check_key(view, key)
        with self._file(view).reading() as tables:
            if tables is None:
                return Reading(None, {}, {}, None)
            number, until_us = _visible(tables)
            start_us = _BEFORE_ALL_US if until_us is None else until_us
            history: dict[bytes, bytes] = {}
            live: dict[bytes, list[bytes]] = {}
            for key in wanted:
                for (value,) in tables.execute("select value from history where batch = ? and key = ?", (number, key)):
                    history[key] = value
                if found := tables.execute(
                    "select value from live where key = ? and span_us >= ? order by span_us", (key, start_us)
                ).fetchall():
                    live[key] = [value for (value,) in found]
            (at_us,) = tables.execute("select min(at_us) from writers").fetchone()
        return Reading(until_us, history, live, at_us)

    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """Merge the keys of both tables; SQLite compares blobs byte by byte."""
        with self._file(view).reading() as tables:
            if tables is None:
                return []
            number, until_us = _visible(tables)
            start_us = _BEFORE_ALL_US if until_us is None else until_us
            place = {"batch": number, "until": start_us, "after": after, "limit": limit}
            return [key for (key,) in tables.execute(_KEYS, place)]

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for each in self._files.values():
                each.close()
            self._files.clear()

    def drop(self, view: str) -> None:
        """Delete all rows; an empty file stays."""
        self._file(view).clear()

    def _file(self, view: str) -> ViewFile:
        check_view(view)
        with self._lock:
            return self._files.setdefault(view, ViewFile(self._folder / f"{view}.db"))


def _visible(tables: sqlite3.Connection) -> tuple[int | None, int | None]:
    """Return the number and the end of the visible batch, or None for both."""
    number, until_us = tables.execute("select id, until_us from batches where state = ?", (_VISIBLE,)).fetchone() or (
        None,
        None,
    )
    return number, until_us


def _show(tables: sqlite3.Connection, first: int, last: int, version: int) -> None:
    """Move what these writers staged into the live values, except for spans that the batch covers."""
    _, until_us = _visible(tables)
    tables.execute(_SHOW, (first, last, version, _BEFORE_ALL_US if until_us is None else until_us))


def _number(tables: sqlite3.Connection, view: str, batch: Batch) -> int | None:
    """Return the number of a batch that is not visible yet, a new one if necessary; None when it is visible."""
    _, until_us = _visible(tables)
    if until_us is not None and until_us > batch.until_us:
        raise later_batch(view, batch, until_us)
    name = (batch.until_us, batch.run)
    tables.execute("insert or ignore into batches (until_us, run, state) values (?, ?, 0)", name)
    found = tables.execute("select id, state from batches where until_us = ? and run = ?", name)
    number: int
    number, state = found.fetchone()
    if state == _REMOVED:
        raise removed_batch(view, batch)
    return number if state == _STAGED else None


def _remove_covered(tables: sqlite3.Connection, number: int, until_us: int) -> None:
    """Delete other batches that end no later, and earlier spans; remember which runs had the same end."""
    others = "select id from batches where until_us <= ? and id != ?"
    for table in ("history", "parts"):
        tables.execute(f"delete from {table} where batch in ({others})", (until_us, number))  # noqa: S608 - constants
    tables.execute("delete from batches where until_us < ?", (until_us,))
    tables.execute("update batches set state = ? where until_us = ? and id != ?", (_REMOVED, until_us, number))
    tables.execute("delete from live where span_us < ?", (until_us,))

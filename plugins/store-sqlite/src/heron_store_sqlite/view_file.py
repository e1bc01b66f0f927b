"""The SQLite file of one view: its tables and its transactions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from heron.driver_kit.private_files import make_private_dir
from heron.errors import StoreError
from heron_driver_kit.os_errors import translated_os_errors

__all__ = ["ViewFile"]

_BUSY_S: Final = 20.0  # the contract allows 30 s for a call
_ANOTHER: Final = "choose another store.folder"

# `state` of a batch: 0 before it is visible, 1 while it is, 2 when another run with the same end has removed it.
_SCHEMA: Final = """
pragma journal_mode = wal;
create table staged (writer integer, version integer, span_us integer, key blob, value blob,
    primary key (writer, version, span_us, key)) without rowid;
create table live (key blob, span_us integer, version integer, value blob, primary key (key, span_us)) without rowid;
create table writers (writer integer primary key, at_us integer);
create table batches (id integer primary key, until_us integer, run text, state integer, unique (until_us, run));
create table parts (batch integer, part integer, primary key (batch, part)) without rowid;
create table history (batch integer, key blob, value blob, primary key (batch, key)) without rowid;
"""


class ViewFile:
    """A connection to the file, for any thread. One transaction at a time uses it."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet."""
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """See one instant of the view in the block; None when the view does not exist."""
        with self._lock, self._translated():
            if self._connection is None and not self._path.exists():
                yield None
                return
            with self._transaction("begin") as connection:
                yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change the view in one step at the end of the block, or not at all; create it if it does not exist."""
        with self._lock, self._translated():
            if self._connection is None and not self._path.exists():
                self._create()
            with self._transaction("begin immediate") as connection:
                yield connection

    def clear(self) -> None:
        """Remove all rows. The file stays, because other processes may have it open."""
        if not self._path.exists():
            return
        with self.writing() as connection:
            for table in ("staged", "live", "writers", "batches", "parts", "history"):
                connection.execute(f"delete from {table}")  # noqa: S608 - a constant
        with self._lock, self._translated():
            for pragma in ("vacuum", "pragma wal_checkpoint(truncate)"):  # give the space back
                self._opened().execute(pragma)

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        connection = self._opened()
        connection.execute(begin)
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has ended the transaction already
                connection.execute("rollback")
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _connect(self._path)
            weakref.finalize(self, self._connection.close)
        return self._connection

    def _create(self) -> None:
        """Make the file under another name first, so that no process sees it without its tables."""
        make_private_dir(self._path.parent)
        descriptor, name = tempfile.mkstemp(prefix=".", dir=self._path.parent)  # mode 0600, also for its log
        os.close(descriptor)
        made = Path(name)
        try:
            with contextlib.closing(_connect(made)) as connection:
                connection.executescript(_SCHEMA)
            with contextlib.suppress(FileExistsError):  # another process was quicker
                os.link(made, self._path)
        finally:
            for each in (name, f"{name}-wal", f"{name}-shm"):
                Path(each).unlink(missing_ok=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        what = f"view {self._path.stem} in {self._path}"
        try:
            with translated_os_errors(StoreError, what, _ANOTHER):
                yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest is a detail
            remedy = _REMEDIES.get(code, f"check the file, or {_ANOTHER}")
            msg = f"{what}: {error}; {remedy}"
            raise StoreError(msg) from error


_REMEDIES: Final = {
    sqlite3.SQLITE_BUSY: f"another process has been writing for {_BUSY_S:g} s, try again when it has ended",
    sqlite3.SQLITE_FULL: "free some space there",
    sqlite3.SQLITE_IOERR: "free some space there, or check the disk",
    sqlite3.SQLITE_READONLY: f"grant the permission to write, or {_ANOTHER}",
    sqlite3.SQLITE_CANTOPEN: f"grant the permission, or {_ANOTHER}",
}


def _connect(path: Path) -> sqlite3.Connection:
    # autocommit: the transactions are written out; `synchronous` stays full, so a commit survives a power failure
    return sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )

"""A connection to the database: transactions in limited time, reconnection, and errors with their remedies."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import RV, PQGen
from psycopg.rows import TupleRow

from heron.clock import monotonic_s
from heron.driver_kit.private_files import read_secret
from heron.errors import ConfigError, StoreError
from heron_store_postgresql.options import PostgresqlOptions

__all__ = ["Connection", "Database"]

T = TypeVar("T")

_CONNECT_S: Final = 4.0
_ATTEMPTS: Final = 4

# `state` of a batch: 0 before it is visible, 1 while it is, 2 when another run with the same end has removed it.
_SCHEMA: Final = b"""
create table view_staged (view text, writer bigint, version bigint, span_us bigint, key bytea, value bytea not null,
    primary key (view, writer, version, span_us, key));
create table view_live (view text, key bytea, span_us bigint, version bigint not null, value bytea not null,
    primary key (view, key, span_us));
create table view_writers (view text, writer bigint, at_us bigint not null, primary key (view, writer));
create table view_batches (id bigint generated always as identity primary key, view text not null,
    until_us bigint not null, run text not null, state smallint not null default 0, unique (view, until_us, run));
create table view_parts (batch bigint, part bigint, primary key (batch, part));
create table view_history (batch bigint, key bytea, value bytea not null, primary key (batch, key))
"""


class _SilentError(psycopg.OperationalError):
    """The server has not answered in time."""


class Connection(psycopg.Connection[TupleRow]):
    """A connection that gives up at `deadline_s`, in monotonic seconds; libpq itself waits for ever."""

    deadline_s: float = float("inf")

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for an answer, as psycopg does for each command."""
        del timeout  # only `notifies` has one
        return super().wait(_until(self.deadline_s, gen), interval)


class Database:
    """One connection, for any thread. One transaction at a time uses it."""

    def __init__(self, options: PostgresqlOptions) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def transaction(self, what: str, begin: bytes, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction. Run it again after a lost connection or a deadlock: it must be idempotent.

        Raises:
            StoreError: when `work` raises it, or when the server fails; begins with `what`.
        """
        with self._lock, self.translated(what):
            deadline_s = monotonic_s() + self._options.timeout_s
            for attempt in range(1, _ATTEMPTS + 1):
                reused = self._connection is not None
                try:
                    return self._once(begin, work, deadline_s)
                except _SilentError:
                    raise
                except errors.OperationalError as error:
                    again = isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)
                    lost = reused and not isinstance(error, errors.QueryCanceled)
                    if attempt == _ATTEMPTS or not (again or lost):
                        raise
        raise AssertionError

    def connect(self, timeout_s: float) -> Connection:
        """Open a connection that the caller closes."""
        chosen = self._options
        connection = Connection.connect(
            host=chosen.host,
            port=chosen.port,
            dbname=chosen.dbname,
            user=chosen.user,
            password=read_secret(chosen.password_file) if chosen.password_file else None,
            sslmode=chosen.sslmode,
            sslrootcert=chosen.ca_file or None,
            connect_timeout=max(2, round(timeout_s)),  # libpq takes whole seconds, from 2
            application_name="heron",
            autocommit=True,
            options=f"-c search_path={chosen.schema} -c statement_timeout={round(chosen.timeout_s * 1000)}",
        )
        connection.deadline_s = monotonic_s() + timeout_s
        return connection

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Turn errors of psycopg and of the password file into a StoreError that begins with `what`."""
        try:
            yield
        except ConfigError as error:
            msg = f"{what}: store.password_file: {error}"
            raise StoreError(msg) from error
        except psycopg.Error as error:
            text = " ".join(str(error).split()) or type(error).__name__
            msg = f"{what} in {self._options.where}: {text}; {_remedy(error, text)}"
            raise StoreError(msg) from error

    def _once(self, begin: bytes, work: Callable[[Connection], T], deadline_s: float) -> T:
        try:
            if self._connection is None:
                self._connection = self.connect(_CONNECT_S)
                weakref.finalize(self, self._connection.close)
                self._connection.deadline_s = deadline_s
                self._create_tables(self._connection)
            self._connection.deadline_s = deadline_s
            self._connection.execute(begin)
            result = work(self._connection)
            self._connection.execute("commit")
        except BaseException:
            if self._connection is not None:
                self._connection.close()  # which rolls back; errors are rare, so the next call opens another one
                self._connection = None
            raise
        return result

    def _create_tables(self, connection: Connection) -> None:
        # Tables of the catalog: `to_regclass` answers from the session's cache, which may be older than the lock.
        present = """select exists (select from pg_tables where schemaname = %s and tablename = 'view_history'),
                            exists (select from pg_namespace where nspname = %s)"""
        schema = self._options.schema
        ((has_tables, _),) = connection.execute(present, (schema, schema))
        if has_tables:
            return
        connection.execute("begin")
        connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
        ((has_tables, has_schema),) = connection.execute(present, (schema, schema))
        if not has_tables:
            if not has_schema:
                connection.execute(f"create schema {schema}".encode())  # the options allow only letters and digits
            connection.execute(_SCHEMA)
        connection.execute("commit")


def _until(deadline_s: float, gen: PQGen[RV]) -> PQGen[RV]:
    state = next(gen)
    try:
        while True:
            ready = yield state
            if not ready and monotonic_s() > deadline_s:
                msg = "the server does not answer"
                raise _SilentError(msg)
            state = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result


def _remedy(error: psycopg.Error, text: str) -> str:
    if isinstance(error, errors.InsufficientPrivilege | errors.InvalidSchemaName):
        return "grant the user CREATE on the database, or create the schema for this user (store.schema)"
    if isinstance(error, errors.DiskFull):
        return "free some space there"
    if isinstance(error, errors.QueryCanceled):
        return "raise store.timeout_s, or write fewer values at a time"
    if "authentication" in text or "password" in text:
        return "check store.user and store.password_file"
    if isinstance(error, errors.OperationalError):
        return "check that the server runs, and store.host, store.port, store.dbname and store.sslmode"
    return "check the tables in the schema (store.schema), or choose another one"

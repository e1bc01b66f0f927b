"""A connection to the server: calls in limited time, reconnection, and errors with their remedies."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any, Final, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from heron.clock import monotonic_s
from heron.driver_kit.private_files import read_secret
from heron.errors import ConfigError, StoreError
from heron_store_redis.options import RedisOptions

__all__ = ["Connection", "Server"]

T = TypeVar("T")

_CONNECT_S: Final = 4.0
_ATTEMPTS: Final = 2
_OLDEST: Final = 7  # an older server replicates a script by running it again
_SCRIPT: Final = (resources.files(__package__) / "view.lua").read_bytes()

Argument = bytes | int


class _UnfitServerError(Exception):
    """The server answers, and cannot keep views."""


class Connection:
    """Runs the script of views on the server, until a time in monotonic seconds."""

    def __init__(self, options: RedisOptions, timeout_s: float) -> None:
        """Log in.

        Raises:
            RedisError: when that fails.
        """
        self.deadline_s = float("inf")
        self._client = redis.Redis(
            host=options.host,
            port=options.port,
            db=options.database,
            username=options.user or None,
            password=read_secret(options.password_file) if options.password_file else None,
            ssl=options.tls,
            ssl_ca_certs=options.ca_file or None,
            socket_connect_timeout=min(timeout_s, _CONNECT_S),
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),  # `Server.run` tries again
            protocol=2,
            single_connection_client=True,
            client_name="heron",
        )
        self._digest = b""

    def check(self, *, require_aof: bool) -> str:
        """Return the version of the server.

        Raises:
            _UnfitServerError: when it may lose what was kept, or is too old or a member of a cluster.
        """
        info = self._client.info()
        version = str(info["redis_version"])
        policy = info["maxmemory_policy"]
        if int(version.partition(".")[0]) < _OLDEST:
            msg = f"the server is version {version}; use Redis {_OLDEST} or newer"
        elif info["redis_mode"] == "cluster":
            msg = "the server is a member of a Redis Cluster; use a server that is none"
        elif info["role"] != "master":
            msg = "the server is a replica, which takes no values; name its master in store.host and store.port"
        elif info["maxmemory"] and policy != "noeviction":
            msg = f"the server removes values when its memory is full; set its maxmemory-policy {policy} to noeviction"
        elif require_aof and not info["aof_enabled"]:
            msg = "the server has no append-only file; set its appendonly to yes, or store.require_aof to false"
        else:
            return version
        raise _UnfitServerError(msg)

    def load(self) -> None:
        """Give the script to the server."""
        self._digest = self._client.execute_command("SCRIPT LOAD", _SCRIPT)  # type: ignore[no-untyped-call]

    def call(self, base: bytes, operation: bytes, *arguments: Argument) -> Any:  # noqa: ANN401  # as the script answers
        """Run one operation of the script on the view whose keys begin with `base`."""
        return self.calls(base, [(operation, *arguments)])[-1]

    def calls(self, base: bytes, operations: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Run several operations one after the other, of which all are sent at once."""
        if monotonic_s() > self.deadline_s:
            msg = "the call takes too long"
            raise redis.TimeoutError(msg)
        pipeline = self._client.pipeline(transaction=False)
        for each in operations:
            pipeline.execute_command("EVALSHA", self._digest, 1, base, *each)  # type: ignore[no-untyped-call]
        return pipeline.execute()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class Server:
    """One connection, for any thread. One call at a time uses it."""

    def __init__(self, options: RedisOptions) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def run(self, what: str, work: Callable[[Connection], T]) -> T:
        """Run `work`. Run it again after a lost connection, or when the server was restarted: it must be idempotent.

        Raises:
            StoreError: when `work` raises it, or when the server fails; begins with `what`.
        """
        with self._lock, self.translated(what):
            deadline_s = monotonic_s() + self._options.timeout_s
            for attempt in range(1, _ATTEMPTS + 1):
                reused = self._connection is not None
                try:
                    return self._once(work, deadline_s)
                except (redis.ConnectionError, redis.exceptions.NoScriptError):
                    if attempt == _ATTEMPTS or not reused:
                        raise
        raise AssertionError

    def check(self, timeout_s: float) -> str:
        """Log in, in a connection of its own, and return the version.

        Raises:
            StoreError: when the server does not answer or cannot keep views.
        """
        with self.translated("no connection"):
            connection = Connection(self._options, timeout_s)
            try:
                return connection.check(require_aof=self._options.require_aof)
            finally:
                connection.close()

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self._lock:
            self._forget()

    @contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Turn errors of redis-py and of the password file into a StoreError that begins with `what`."""
        try:
            yield
        except ConfigError as error:
            msg = f"{what}: store.password_file: {error}"
            raise StoreError(msg) from error
        except _UnfitServerError as error:
            msg = f"{what} in {self._options.where}: {error}"
            raise StoreError(msg) from error
        except (redis.RedisError, ssl.SSLError, OSError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            msg = f"{what} in {self._options.where}: {text}; {_remedy(error)}"
            raise StoreError(msg) from error

    def _once(self, work: Callable[[Connection], T], deadline_s: float) -> T:
        try:
            if self._connection is None:
                self._connection = Connection(self._options, self._options.timeout_s)
                self._connection.check(require_aof=self._options.require_aof)
                self._connection.load()
            self._connection.deadline_s = deadline_s
            return work(self._connection)
        except BaseException:
            self._forget()  # errors are rare, so the next call opens another one
            raise

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_REMEDIES: Final = (
    (redis.TimeoutError, "check the load of the server, raise store.timeout_s, or write fewer values at a time"),
    (redis.AuthenticationError, "check store.user and store.password_file"),
    (
        redis.exceptions.NoPermissionError,
        "give the user +@read +@write +@connection +@scripting +info, for keys that begin with {PREFIX:",
    ),
    (redis.exceptions.OutOfMemoryError, "raise its maxmemory"),
    (redis.BusyLoadingError, "wait until it has read its data"),
    (redis.ResponseError, "check the log of the server, and the keys that begin with store.prefix"),
    (Exception, "check that the server runs, and store.host, store.port, store.tls and store.ca_file"),
)


def _remedy(error: Exception) -> str:
    return next(remedy for kind, remedy in _REMEDIES if isinstance(error, kind))

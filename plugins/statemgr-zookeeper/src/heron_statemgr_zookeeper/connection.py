"""One session with the ensemble. It reads, changes and watches znodes, each with a deadline.

A session outlives its connections. While it is *suspended* (no server answers), holds are kept. When it is *lost* (the
ensemble has ended it), its ephemeral znodes are gone. kazoo reconnects to any of the servers, and starts a new session
after a lost session.

Requests are sent only on an open connection. A queued request could be carried out after its caller has received an
error.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, cast

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    QuotaExceededError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.security import make_digest_acl

from heron import clock
from heron.errors import StateError, StateUnavailableError
from heron_statemgr_zookeeper.operation import Check, Create, Operation, Put, Remove, ZNode
from heron_statemgr_zookeeper.options import ZookeeperOptions

__all__ = ["AnswerLostError", "Connection"]

T = TypeVar("T")
_LOST = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, SessionMovedError)
_NOT_AS_EXPECTED = (NodeExistsError, NoNodeError, BadVersionError)
_UNDONE = (RolledBackError, RuntimeInconsistency)  # results of the other operations if one operation fails
_CLOSE_S = 1.5  # an executor must end within 5 s of its stop signal, and its children end before it closes
_SILENT_S = 0.5  # lets the threads end; a silent server sends no answer to wait for
_RECONNECT = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}  # reconnects at most 1 s after the ensemble returns

# kazoo logs every attempt to connect, and the password at level DEBUG.
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class AnswerLostError(StateUnavailableError):
    """The connection broke during a change. A read shows whether the change was made."""


class _Stat(Protocol):
    version: int
    ephemeralOwner: int
    mzxid: int


class _Pending(Protocol):
    """kazoo's result of an asynchronous request."""

    def get(self, block: bool = ..., timeout: float | None = ...) -> object: ...


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Gives a server up that does not answer the first request of a connection; kazoo then tries the next.

    A server that is starting accepts connections that it never reads (seen with 3.9: about one restart of twenty).
    kazoo would wait for it as long as a session lives, and the session would be lost.
    """

    def __init__(self, answer_s: float) -> None:
        super().__init__()
        self._answer_s = answer_s

    def create_connection(self, *args: object, timeout: float, **options: object) -> object:
        return super().create_connection(*args, timeout=min(timeout, self._answer_s), **options)

    def select(
        self, reading: Sequence[object], writing: Sequence[object], failing: Sequence[object], wait_s: float
    ) -> object:
        # An open connection is idle in a wait for two sockets; a wait for one is within a message.
        limit_s = wait_s if len(reading) > 1 else min(wait_s, self._answer_s)
        return super().select(reading, writing, failing, limit_s)


class Connection:
    """Thread-safe; the first request connects. Every request raises StateUnavailableError at its deadline."""

    def __init__(
        self, options: ZookeeperOptions, on_connected: Callable[[], None], on_lost: Callable[[], None]
    ) -> None:
        """Neither callback may block. `on_lost` is called after a loss of the session."""
        self.place = f"ZooKeeper at {options.hosts}"
        self._user = f"user {options.username!r}" if options.username else "users without a name"
        self._on = {KazooState.CONNECTED: on_connected, KazooState.LOST: on_lost}
        digest = (options.username, options.password)
        self._client = KazooClient(
            hosts=",".join(each.strip() for each in options.hosts.split(",")),
            timeout=options.session_timeout_s,
            handler=_Handler(min(options.timeout_s, options.session_timeout_s / 3)),
            connection_retry=_RECONNECT,
            auth_data=[("digest", ":".join(digest))] if options.username else None,
            default_acl=[make_digest_acl(*digest, all=True)] if options.username else None,
            logger=_kazoo_log,
        )
        self._client.add_listener(self._changed)
        self._guard = threading.Lock()
        self._connected: threading.Event | None = None
        self._silent = False
        self._closed = False

    def read(self, paths: Sequence[str], deadline_s: float) -> tuple[ZNode | None, ...]:
        """Return the znodes, read in this order. They include every change that was confirmed before the call."""

        def ask() -> tuple[ZNode | None, ...]:
            self._client.sync_async(paths[0])  # this server may be behind the server that confirmed a change
            asked: list[_Pending] = [self._client.get_async(path) for path in paths]
            return tuple(self._znode(each, deadline_s) for each in asked)

        return self._retry(ask, f"read {paths[-1]}", deadline_s)

    def read_and_watch(self, path: str, on_event: Callable[[object], None], deadline_s: float) -> ZNode | None:
        """As `read` with one path. `on_event` is called once, after a change of the znode or a broken connection.

        A thread of kazoo calls `on_event`, which must not block.
        """

        def ask() -> ZNode | None:
            self._client.sync_async(path)
            while True:
                found = self._znode(self._client.get_async(path, watch=on_event), deadline_s)
                if found is not None:
                    return found
                if self._result(self._client.exists_async(path, watch=on_event), deadline_s) is None:
                    return None

        return self._retry(ask, f"watch {path}", deadline_s)

    def children(self, path: str, deadline_s: float) -> list[str]:
        """Return the names below a znode; an empty list if the znode does not exist."""

        def ask() -> list[str]:
            self._client.sync_async(path)
            try:
                return cast("list[str]", self._result(self._client.get_children_async(path), deadline_s))
            except NoNodeError:
                return []

        return self._retry(ask, f"list {path}", deadline_s)

    def ensure(self, path: str, deadline_s: float) -> None:
        """Create the znode and its ancestors, as far as they do not exist."""
        self._retry(
            lambda: self._result(self._client.ensure_path_async(path), deadline_s), f"create {path}", deadline_s
        )

    def commit(self, operations: Sequence[Operation], deadline_s: float) -> bool:
        """Carry out all operations and return True. Carry out none and return False if a znode is not as expected.

        Raises:
            AnswerLostError: when the connection broke before the answer arrived.
        """
        self.connect(deadline_s)
        path = operations[-1].path
        with self._translated(f"write {path}"):
            try:
                answer = self._result(_transaction(self._client, operations), deadline_s)
            except _LOST as error:
                message = f"the connection to {self.place} broke while {path} was written; the outcome is unknown"
                raise AnswerLostError(message) from error
            failed = [each for each in cast("list[object]", answer) if isinstance(each, Exception)]
            cause = next((each for each in failed if not isinstance(each, _UNDONE)), None)
            if cause is not None and not isinstance(cause, _NOT_AS_EXPECTED):
                raise cause
            return not failed

    def version(self, deadline_s: float) -> str:
        """Return the version of the connected server; empty if the server does not report it."""
        self.connect(deadline_s)
        report = ""
        with contextlib.suppress(KazooException, OSError, AttributeError):  # the connection may break meanwhile
            report = str(self._client.command(b"srvr"))
        return report.partition("version: ")[2].partition("-")[0]

    def connect(self, deadline_s: float) -> None:
        """Wait for a connection.

        Raises:
            StateUnavailableError: when there is no connection at the deadline. A deadline in the past does not wait.
        """
        with self._guard:
            if self._closed:
                message = f"the state manager of {self.place} is closed; open another one"
                raise StateError(message)
            if self._connected is None:
                self._connected = self._client.start_async()
            connected = self._connected
        if not connected.wait(max(0.0, deadline_s - clock.monotonic_s())):
            message = f"{self.place} does not answer; is it running, does it have a quorum, and is 'hosts' correct?"
            raise StateUnavailableError(message)

    def session(self) -> int | None:
        """Return the number of the session; None without a connection."""
        known = self._client.client_id
        return None if known is None else cast("int", known[0])

    def close(self, timeout_s: float) -> bool:
        """End the session and its ephemeral znodes. Return False without an answer; its timeout then ends it.

        Waits at most `timeout_s`, and at most half a second if the last request had no answer either.
        """
        with self._guard:
            if self._closed:
                return True
            self._closed = True
            if self._connected is None:
                self._client.close()
                return True
            answered = self._connected.is_set()
        ending = threading.Thread(target=self._end, name="zookeeper-close", daemon=True)
        ending.start()
        ending.join(min(timeout_s, _CLOSE_S if answered and not self._silent else _SILENT_S))
        return answered and not ending.is_alive()

    def _end(self) -> None:
        with contextlib.suppress(Exception):  # after a failure the session timeout ends the session
            self._client.stop()
        with contextlib.suppress(Exception):
            self._client.close()

    def _changed(self, state: str) -> None:
        if state in self._on:
            self._on[state]()

    def _retry(self, ask: Callable[[], T], what: str, deadline_s: float) -> T:
        """Repeat an idempotent request after each broken connection."""
        while True:
            self.connect(deadline_s)
            with self._translated(what), contextlib.suppress(*_LOST):
                return ask()

    def _znode(self, asked: _Pending, deadline_s: float) -> ZNode | None:
        try:
            data, stat = cast("tuple[bytes, _Stat]", self._result(asked, deadline_s))
        except NoNodeError:
            return None
        return ZNode(data, stat.version, stat.ephemeralOwner, stat.mzxid)

    def _result(self, asked: _Pending, deadline_s: float) -> object:
        try:
            answer = asked.get(timeout=max(0.0, deadline_s - clock.monotonic_s()))
        except KazooTimeoutError:
            self._silent = True
            raise
        self._silent = False
        return answer

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except KazooTimeoutError as error:
            message = f"{self.place} accepts requests but does not answer in time: cannot {what}; see its log"
            raise StateUnavailableError(message) from error
        except NoAuthError as error:
            message = (
                f"{self.place} does not let {self._user} {what}; check 'username' and 'password', "
                "or give that user rights there (zkCli: getAcl, setAcl)"
            )
            raise StateError(message) from error
        except QuotaExceededError as error:
            message = f"{self.place} cannot {what}: its quota is used up; raise it (zkCli: setquota)"
            raise StateError(message) from error
        except _LOST:
            raise
        except KazooException as error:
            message = f"{self.place} refuses to {what}: {type(error).__name__} {error}".rstrip()
            raise StateError(message) from error


def _transaction(client: KazooClient, operations: Sequence[Operation]) -> _Pending:
    transaction = client.transaction()
    for each in operations:
        match each:
            case Create(path, data, ephemeral):
                transaction.create(path, data, ephemeral=ephemeral)
            case Put(path, data, version):
                transaction.set_data(path, data, version)
            case Check(path, version):
                transaction.check(path, version)
            case Remove(path, version):
                transaction.delete(path, version)
    return cast("_Pending", transaction.commit_async())

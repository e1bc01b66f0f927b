"""One session with the ensemble: reading, changing and watching znodes, with a deadline for each.

The session outlives connections: while it is *suspended* (no server answers) nothing is known and nothing is lost;
once it is *lost* (the ensemble has ended it) all that was held with it is gone. kazoo reconnects by itself, to any of
the servers, and begins a new session after a lost one.

Requests are sent only while there is a connection: what waited in a queue would be carried out at some later time,
when whoever asked has long been told that there was no answer.
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
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl

from heron import clock
from heron.errors import StateError, StateUnavailableError
from heron_statemgr_zookeeper.operation import Check, Create, Operation, Put, Remove, ZNode
from heron_statemgr_zookeeper.options import ZookeeperOptions

__all__ = ["AnswerLostError", "Connection"]

T = TypeVar("T")
_LOST = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, SessionMovedError)
_NOT_AS_EXPECTED = (NodeExistsError, NoNodeError, BadVersionError)
_UNDONE = (RolledBackError, RuntimeInconsistency)  # the steps beside the one that failed
_CLOSE_S = 1.5  # an executor has to be gone 5 s after it was told to end, and its children end before it closes
_SILENT_S = 0.5  # for the threads alone: nobody is there who would answer
_RECONNECT = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}  # a second after the ensemble is back, so are we

# kazoo writes every attempt to connect, and at the level of debugging the password.
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class AnswerLostError(StateUnavailableError):
    """The connection broke while a change was under way; a read tells whether it was made."""


class _Stat(Protocol):
    version: int
    ephemeralOwner: int
    mzxid: int


class _Pending(Protocol):
    """What kazoo gives for a request."""

    def get(self, block: bool = ..., timeout: float | None = ...) -> object: ...


class Connection:
    """Thread-safe; the first request connects. Every request raises StateUnavailableError when its time is over."""

    def __init__(
        self, options: ZookeeperOptions, on_connected: Callable[[], None], on_lost: Callable[[], None]
    ) -> None:
        """`on_connected` is called after each connection, `on_lost` after a loss of the session; neither may wait."""
        self.place = f"ZooKeeper at {options.hosts}"
        self._user = f"user {options.username!r}" if options.username else "users without a name"
        self._on = {KazooState.CONNECTED: on_connected, KazooState.LOST: on_lost}
        digest = (options.username, options.password)
        self._client = KazooClient(
            hosts=",".join(each.strip() for each in options.hosts.split(",")),
            timeout=options.session_timeout_s,
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
        """The znodes as they are after every change that was answered before; in this order, one after the other."""

        def ask() -> tuple[ZNode | None, ...]:
            self._client.sync_async(paths[0])  # another server may be behind the one that answered
            asked: list[_Pending] = [self._client.get_async(path) for path in paths]
            return tuple(self._znode(each, deadline_s) for each in asked)

        return self._again(ask, f"read {paths[-1]}", deadline_s)

    def look(self, path: str, on_event: Callable[[object], None], deadline_s: float) -> ZNode | None:
        """As `read`; `on_event` is called once, when the znode has changed or the connection broke.

        It is called from a thread of kazoo's, which must not wait.
        """

        def ask() -> ZNode | None:
            self._client.sync_async(path)
            while True:
                found = self._znode(self._client.get_async(path, watch=on_event), deadline_s)
                if found is not None:
                    return found
                if self._result(self._client.exists_async(path, watch=on_event), deadline_s) is None:
                    return None

        return self._again(ask, f"watch {path}", deadline_s)

    def children(self, path: str, deadline_s: float) -> list[str]:
        """The names below a znode; none when it is not there."""

        def ask() -> list[str]:
            self._client.sync_async(path)
            try:
                return cast("list[str]", self._result(self._client.get_children_async(path), deadline_s))
            except NoNodeError:
                return []

        return self._again(ask, f"list {path}", deadline_s)

    def ensure(self, path: str, deadline_s: float) -> None:
        """Makes the znode and those above it, where they are missing."""
        self._again(lambda: self._result(self._client.ensure_path_async(path), deadline_s), f"make {path}", deadline_s)

    def commit(self, operations: Sequence[Operation], deadline_s: float) -> bool:
        """Does all of it and returns True; or nothing, and False, when a znode is not as an operation expects.

        Raises:
            AnswerLostError: when the connection broke meanwhile.
        """
        self.connect(deadline_s)
        path = operations[-1].path
        with self._translated(f"write {path}"):
            try:
                answer = self._result(_transaction(self._client, operations), deadline_s)
            except _LOST as error:
                message = f"{self.place} went away while {path} was written; whether it was is unknown"
                raise AnswerLostError(message) from error
            failed = [each for each in cast("list[object]", answer) if isinstance(each, Exception)]
            cause = next((each for each in failed if not isinstance(each, _UNDONE)), None)
            if cause is not None and not isinstance(cause, _NOT_AS_EXPECTED):
                raise cause
            return not failed

    def version(self, deadline_s: float) -> str:
        """The version of the server that we are connected to; empty where it does not say so."""
        self.connect(deadline_s)
        words = ""
        with contextlib.suppress(KazooException, OSError, AttributeError):  # of a connection that broke just now
            words = str(self._client.command(b"srvr"))
        return words.partition("version: ")[2].partition("-")[0]

    def connect(self, deadline_s: float) -> None:
        """Returns when there is a connection.

        Raises:
            StateUnavailableError: when there is none at the deadline; may be in the past, to ask only.
        """
        with self._guard:
            if self._closed:
                message = f"the state manager of {self.place} is closed; open another one"
                raise StateError(message)
            if self._connected is None:
                self._connected = self._client.start_async()
            connected = self._connected
        if not connected.wait(max(0.0, deadline_s - clock.monotonic_s())):
            message = f"{self.place} does not answer; is it running, has it a quorum, and are the 'hosts' right?"
            raise StateUnavailableError(message)

    def session(self) -> int | None:
        """The number of the session, None while there is no connection."""
        known = self._client.client_id
        return None if known is None else cast("int", known[0])

    def close(self, timeout_s: float) -> bool:
        """Ends the session, and with it what it held; False when there was no answer, and its time-out will end it.

        Takes at most `timeout_s`, and a short moment only where the last request was not answered either.
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
        with contextlib.suppress(Exception):  # the process is about to end, and the session then ends by itself
            self._client.stop()
        with contextlib.suppress(Exception):
            self._client.close()

    def _changed(self, state: str) -> None:
        if state in self._on:
            self._on[state]()

    def _again(self, ask: Callable[[], T], what: str, deadline_s: float) -> T:
        """Asks anew after each connection that broke: for what may be done twice."""
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
            message = f"{self.place} takes requests and does not answer in time: cannot {what}; look at its log"
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

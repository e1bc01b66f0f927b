"""One node: a znode with the record, and a counter that outlives it.

    ROOT/<kind>/<topology>            the record (see `record`); ephemeral when it is held
    ROOT/versions/<kind>/<topology>   the counter: the last version as a number; never removed, so that versions grow

Every change of a node is one transaction. It also writes or checks the counter, at the version that was read before. Of
two writers, one finds the counter changed and reads again. A part of a value (`NodeKind.PART`) needs no counter: it is
written once, under a name that is never used again.

If the connection breaks during a transaction, the outcome is unknown until the node is read on the next connection. The
record has the token of the call that wrote it. If the token is another call's and the counter has not changed, the
transaction was not carried out, and is repeated. This is safe because ZooKeeper refuses requests that a session has
sent on an earlier connection.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron import clock
from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind
from heron_statemgr_zookeeper.connection import AnswerLostError, Connection
from heron_statemgr_zookeeper.operation import Check, Create, Operation, Put, Remove, ZNode
from heron_statemgr_zookeeper.record import Record, decode, encode

__all__ = ["Node"]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A node at one moment. A garbled node has a znode without a record."""

    counter: ZNode | None
    znode: ZNode | None
    record: Record | None
    last: int

    @property
    def version(self) -> int:
        """The version of the node, or MUST_NOT_EXIST. A garbled node has the last version of the counter."""
        return MUST_NOT_EXIST if self.znode is None else self.last

    @property
    def mark(self) -> tuple[int, int]:
        """A value that differs after each change through a `Node`."""
        return (-1, self.znode.change if self.znode else 0) if self.counter is None else (self.counter.version, 0)


class Node:
    """One node. Each operation uses a new object, and takes at most `timeout_s` seconds."""

    def __init__(self, connection: Connection, root: str, kind: NodeKind, topology: str, timeout_s: float) -> None:
        self._connection = connection
        self._folder = f"{root}/{kind.value}"
        self._counters = None if kind is NodeKind.PART else f"{root}/versions/{kind.value}"
        self._topology = topology
        self._deadline_s = clock.monotonic_s() + timeout_s
        self.path = f"{self._folder}/{topology}"

    def read(self) -> Record | None:
        """Return the present record, or None."""
        (znode,) = self._connection.read([self.path], self._deadline_s)
        return self.decoded(znode)

    def decoded(self, znode: ZNode | None) -> Record | None:
        """Return the record of the node's znode."""
        return None if znode is None else decode(znode.data, f"{self._connection.place}, {self.path}")

    def write(self, value: bytes, expected: int | None) -> int:
        """Replace the record if `expected` agrees, and return its new version. A held node stays held."""
        token = secrets.token_hex(8)

        def operations(now: _Snapshot) -> Sequence[Operation]:
            self._expect(now, expected)
            data = encode(Record(now.last + 1, value, token, now.record.holder if now.record else ""))
            znode = now.znode
            change = Create(self.path, data) if znode is None else Put(self.path, data, znode.version)
            return *self._count(now), change

        return self._change(operations, token)

    def acquire(self, value: bytes, token: str, is_dead: Callable[[int, str], bool]) -> int:
        """Hold the node until the end of this session, and return its version.

        `is_dead` receives the session and the token of the present hold. It returns True if that holder has ended,
        although its session has not timed out. The node of a dead holder is replaced at once.

        Raises:
            StateConflictError: when another hold has the node.
        """

        def operations(now: _Snapshot) -> Sequence[Operation]:
            znode = now.znode
            data = encode(Record(now.last + 1, value, token, token))
            create = Create(self.path, data, ephemeral=True)
            if znode is None:
                return *self._count(now), create
            if znode.owner and not is_dead(znode.owner, now.record.holder if now.record else ""):
                message = (
                    f"{self.path} in {self._connection.place} is held by another process (session {znode.owner:#x})"
                )
                raise StateConflictError(message)
            return *self._count(now), Remove(self.path, znode.version), create

        return self._change(operations, token)

    def remove(self, expected: int | None) -> None:
        """Remove the node if `expected` agrees."""
        before: _Snapshot | None = None
        while True:
            now = self._snapshot()
            if before is not None and now.znode is None:
                return  # the answer to our own removal was lost
            if before is not None and now.mark != before.mark:
                raise StateUnavailableError(self._unknown())
            self._expect(now, expected)
            if now.znode is None:
                return
            check = [] if now.counter is None or self._counter is None else [Check(self._counter, now.counter.version)]
            try:
                if self._connection.commit([*check, Remove(self.path, now.znode.version)], self._deadline_s):
                    return
                before = None
            except AnswerLostError:
                before = now

    def release(self, token: str) -> None:
        """Remove the node if it still belongs to the hold with this token."""
        while True:
            (znode,) = self._connection.read([self.path], self._deadline_s)
            if znode is None or not _belongs_to(token, znode, self.path):
                return
            with contextlib.suppress(AnswerLostError):  # the next read shows whether the node was removed
                if self._connection.commit([Remove(self.path, znode.version)], self._deadline_s):
                    return

    @property
    def _counter(self) -> str | None:
        return None if self._counters is None else f"{self._counters}/{self._topology}"

    def _change(self, operations: Callable[[_Snapshot], Sequence[Operation]], token: str) -> int:
        before: _Snapshot | None = None
        while True:
            now = self._snapshot()
            if before is not None and now.record is not None and now.record.write == token:
                return now.record.version
            if before is not None and now.mark != before.mark:
                raise StateUnavailableError(self._unknown())
            if now.counter is None:
                self._make_folders()
            before = None
            try:
                if self._connection.commit(operations(now), self._deadline_s):
                    return now.last + 1
                self._make_folders()  # somebody may have removed a folder by hand
            except AnswerLostError:
                before = now

    def _snapshot(self) -> _Snapshot:
        # The counter is read first: a transaction with a counter older than the record fails, and is repeated.
        paths = [self.path] if self._counter is None else [self._counter, self.path]
        *counters, znode = self._connection.read(paths, self._deadline_s)
        counter = counters[0] if counters else None
        try:
            record = self.decoded(znode)
        except StateError:
            record = None  # `read` raises for a garbled node; a write repairs it
        last = max(_number(counter), record.version if record else 0)
        return _Snapshot(counter, znode, record, last)

    def _count(self, now: _Snapshot) -> Sequence[Operation]:
        if self._counter is None:
            return []
        number = b"%d" % (now.last + 1)
        if now.counter is None:
            return [Create(self._counter, number)]
        return [Put(self._counter, number, now.counter.version)]

    def _expect(self, now: _Snapshot, expected: int | None) -> None:
        if expected is not None and now.version != expected:
            is_now = "does not exist" if now.znode is None else f"is at version {now.version}"
            wanted = "no node" if expected == MUST_NOT_EXIST else f"version {expected}"
            message = (
                f"{self.path} in {self._connection.place} {is_now}, but {wanted} was expected; read it again and retry"
            )
            raise StateConflictError(message)

    def _make_folders(self) -> None:
        for folder in (self._folder, self._counters):
            if folder is not None:
                self._connection.ensure(folder, self._deadline_s)

    def _unknown(self) -> str:
        return (
            f"the connection to {self._connection.place} broke while {self.path} was changed, and another process has "
            "changed it since; the outcome is unknown: read the node"
        )


def _number(counter: ZNode | None) -> int:
    text = counter.data if counter else b""
    return int(text) if text.isdigit() else 0


def _belongs_to(token: str, znode: ZNode, path: str) -> bool:
    try:
        return decode(znode.data, path).holder == token
    except StateError:
        return False  # changed by hand; it ends with the session

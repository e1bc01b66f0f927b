"""One node: a znode with the record, and a counter that outlives it.

    ROOT/<kind>/<topology>            the record (see `record`); ephemeral when it is held
    ROOT/versions/<kind>/<topology>   the last version, as a number; never removed, so that versions grow for ever

Every change of a node is one transaction that also writes, or checks, the counter at the version at which it was read:
of two writers one finds it changed, and reads again. A part of a value (`NodeKind.PART`) is written once under a name
that is never used again, and needs no counter.

When the connection breaks in the middle of a transaction nobody knows whether it was done, until the node is read over
the next one: the record has the token of the call that wrote it. If it is not ours and the counter is where it was,
then nothing was done, for ZooKeeper refuses what a session has sent over a former connection. So it is tried again.
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
class _Seen:
    """A node at one moment; there is a znode without a record when it is garbled."""

    counter: ZNode | None
    znode: ZNode | None
    record: Record | None
    last: int

    @property
    def version(self) -> int:
        """That of the node, or MUST_NOT_EXIST; of a garbled one the last that was given."""
        return MUST_NOT_EXIST if self.znode is None else self.last

    @property
    def mark(self) -> tuple[int, int]:
        """Another one after each change that is made with a `Node`."""
        return (-1, self.znode.change if self.znode else 0) if self.counter is None else (self.counter.version, 0)


class Node:
    """Made anew for each operation, which takes at most `timeout_s`."""

    def __init__(self, connection: Connection, root: str, kind: NodeKind, topology: str, timeout_s: float) -> None:
        self._connection = connection
        self._folder = f"{root}/{kind.value}"
        self._counters = None if kind is NodeKind.PART else f"{root}/versions/{kind.value}"
        self._topology = topology
        self._deadline_s = clock.monotonic_s() + timeout_s
        self.path = f"{self._folder}/{topology}"

    def read(self) -> Record | None:
        """The present record."""
        (znode,) = self._connection.read([self.path], self._deadline_s)
        return self.decoded(znode)

    def decoded(self, znode: ZNode | None) -> Record | None:
        """The record of the node's znode."""
        return None if znode is None else decode(znode.data, f"{self._connection.place}, {self.path}")

    def write(self, value: bytes, expected: int | None) -> int:
        """Replaces the record if `expected` agrees, and returns its new version. A hold stays one."""
        token = secrets.token_hex(8)

        def operations(seen: _Seen) -> Sequence[Operation]:
            self._expect(seen, expected)
            data = encode(Record(seen.last + 1, value, token, seen.record.holder if seen.record else ""))
            znode = seen.znode
            change = Create(self.path, data) if znode is None else Put(self.path, data, znode.version)
            return *self._counted(seen), change

        return self._change(operations, token)

    def take(self, value: bytes, token: str, is_gone: Callable[[int, str], bool]) -> int:
        """Makes the node one that ends with this session, and returns its version.

        `is_gone` says of a session and the token of its hold whether that holder is known to be gone, although the
        ensemble still waits for it; its node is replaced at once.

        Raises:
            StateConflictError: when another holds it.
        """

        def operations(seen: _Seen) -> Sequence[Operation]:
            znode = seen.znode
            data = encode(Record(seen.last + 1, value, token, token))
            create = Create(self.path, data, ephemeral=True)
            if znode is None:
                return *self._counted(seen), create
            if znode.owner and not is_gone(znode.owner, seen.record.holder if seen.record else ""):
                message = f"{self.path} in {self._connection.place} is held by another (session {znode.owner:#x})"
                raise StateConflictError(message)
            return *self._counted(seen), Remove(self.path, znode.version), create

        return self._change(operations, token)

    def remove(self, expected: int | None) -> None:
        """Removes the node if `expected` agrees."""
        before: _Seen | None = None
        while True:
            seen = self._seen()
            if before is not None and seen.znode is None:
                return  # our own removal, whose answer was lost
            if before is not None and seen.mark != before.mark:
                raise StateUnavailableError(self._unknown())
            self._expect(seen, expected)
            if seen.znode is None:
                return
            check = (
                [] if seen.counter is None or self._counter is None else [Check(self._counter, seen.counter.version)]
            )
            try:
                if self._connection.commit([*check, Remove(self.path, seen.znode.version)], self._deadline_s):
                    return
                before = None
            except AnswerLostError:
                before = seen

    def give_up(self, token: str) -> None:
        """Removes the node if it still belongs to the hold with this token."""
        while True:
            (znode,) = self._connection.read([self.path], self._deadline_s)
            if znode is None or not _held(znode, token, self.path):
                return
            with contextlib.suppress(AnswerLostError):  # the next look tells whether it was removed
                if self._connection.commit([Remove(self.path, znode.version)], self._deadline_s):
                    return

    @property
    def _counter(self) -> str | None:
        return None if self._counters is None else f"{self._counters}/{self._topology}"

    def _change(self, operations: Callable[[_Seen], Sequence[Operation]], token: str) -> int:
        lost: _Seen | None = None
        while True:
            seen = self._seen()
            if lost is not None and seen.record is not None and seen.record.write == token:
                return seen.record.version
            if lost is not None and seen.mark != lost.mark:
                raise StateUnavailableError(self._unknown())
            if seen.counter is None:
                self._make_folders()
            lost = None
            try:
                if self._connection.commit(operations(seen), self._deadline_s):
                    return seen.last + 1
                self._make_folders()  # one may have been removed by hand
            except AnswerLostError:
                lost = seen

    def _seen(self) -> _Seen:
        # The counter first: when the record is newer than the counter the transaction fails, the other way round not.
        paths = [self.path] if self._counter is None else [self._counter, self.path]
        *counters, znode = self._connection.read(paths, self._deadline_s)
        counter = counters[0] if counters else None
        try:
            record = self.decoded(znode)
        except StateError:
            record = None  # whoever reads is told; whoever writes mends it
        last = max(_number(counter), record.version if record else 0)
        return _Seen(counter, znode, record, last)

    def _counted(self, seen: _Seen) -> Sequence[Operation]:
        if self._counter is None:
            return []
        number = b"%d" % (seen.last + 1)
        if seen.counter is None:
            return [Create(self._counter, number)]
        return [Put(self._counter, number, seen.counter.version)]

    def _expect(self, seen: _Seen, expected: int | None) -> None:
        if expected is not None and seen.version != expected:
            is_at = "is not there" if seen.znode is None else f"is at version {seen.version}"
            wanted = "no node" if expected == MUST_NOT_EXIST else f"version {expected}"
            message = f"{self.path} in {self._connection.place} {is_at}, expected was {wanted}; read it again"
            raise StateConflictError(message)

    def _make_folders(self) -> None:
        for folder in (self._folder, self._counters):
            if folder is not None:
                self._connection.ensure(folder, self._deadline_s)

    def _unknown(self) -> str:
        return (
            f"{self._connection.place} went away while {self.path} was changed, and somebody else changed it since; "
            "whether ours was made is unknown: read it"
        )


def _number(counter: ZNode | None) -> int:
    text = counter.data if counter else b""
    return int(text) if text.isdigit() else 0


def _held(znode: ZNode, token: str, path: str) -> bool:
    try:
        return decode(znode.data, path).holder == token
    except StateError:
        return False  # changed by hand: it ends with the session

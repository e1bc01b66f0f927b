"""One node: a folder with a pointer and the value that it names, changed only by a rename of the pointer.

    ROOT/<kind>/<topology>/node.…         the pointer (see `pointer`): always one; it outlives the node, so that
                                          versions and epochs always grow
    ROOT/<kind>/<topology>/value.<token>  a value; it exists before the pointer names it, and is removed afterwards
    ROOT/new/<token>/                     the folder of a new node, moved to its place when it is complete

This module keeps every invariant of a node. A listing shows a folder at one instant, so a reader always sees exactly
one pointer. Later writers remove the files of a killed writer when they are old. Only times of the clock of HDFS are
compared for that.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import Versioned
from heron_statemgr_hdfs.lease_monitor import HolderState, LeaseMonitor
from heron_statemgr_hdfs.pointer import NO_NODE, Pointer, parse_pointer, parse_value_name, value_name
from heron_statemgr_hdfs.web_hdfs import Entry, WebHdfs

__all__ = ["LIMIT_S", "Node", "Store"]

_ABANDONED_MS = 600_000  # a write takes at most ten seconds, so the writer of a file that is so much older is dead
_POLL_S = 0.2
LIMIT_S = 9.0
"""The time limit of an operation; the contract allows 10 s."""


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of the nodes in HDFS, and the leases that this process has observed."""

    hdfs: WebHdfs
    root: str
    leases: LeaseMonitor


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A node's folder at one instant: the pointer, the modification time of its value, and abandoned values."""

    pointer: Pointer
    modified_ms: int = 0
    abandoned: tuple[str, ...] = ()

    @property
    def mark(self) -> object:
        """A value that changes with each renewal of a hold."""
        return (self.pointer.token, self.modified_ms)


class Node:
    """One node of a store. Each operation uses a new object."""

    def __init__(self, store: Store, kind: str, topology: str) -> None:
        self._store = store
        self._hdfs = store.hdfs
        self._kind_folder = f"{store.root}/{kind}"
        self.folder = f"{self._kind_folder}/{topology}"
        self.label = f"{kind}/{topology}"

    def read(self) -> Versioned | None:
        """Return the present value. Removes a node whose holder is dead, and returns None for it."""
        with self._hdfs.within(LIMIT_S):
            failed = ""
            while True:
                pointer = self.pointer()
                if not pointer.token:
                    return None
                value = self._hdfs.read(self._value_path(pointer.token))
                if value is not None and pointer.fits(value):
                    return Versioned(value, pointer.version)
                # A writer may have replaced the value after the listing, so only a second failure counts.
                if pointer.token == failed:
                    raise self._garbled("its value is missing" if value is None else "its value was changed or cut")
                failed = pointer.token

    def pointer(self) -> Pointer:
        """Return the present pointer, without the value. Removes a node whose holder is dead."""
        with self._hdfs.within(LIMIT_S):
            now = self._present()
            return now.pointer if now else NO_NODE

    def write(self, value: bytes, expected: int | None) -> int:
        """Replace the value if `expected` agrees, and return its version. A held node stays held."""

        def holder_of(present: Pointer) -> str:
            self._check(present, expected)
            return present.holder

        with self._hdfs.within(LIMIT_S):
            return self._commit(value, holder_of)

    def remove(self, expected: int | None) -> None:
        """Remove the node if `expected` agrees."""
        with self._hdfs.within(LIMIT_S):
            while True:
                now = self._present()
                pointer = now.pointer if now else NO_NODE
                self._check(pointer, expected)
                if not pointer.token:
                    return
                if self._exchange(pointer, pointer.gone()):
                    self._remove_values([pointer.token])
                    return

    def acquire(self, value: bytes, holder: str) -> int:
        """Hold the node, and return its version.

        Raises:
            StateConflictError: when the node is held and its holder lives.
        """

        def free(present: Pointer) -> str:
            if present.holder:
                message = f"{self.label} is held by another live process (in {self.folder})"
                raise StateConflictError(message)
            return holder

        with self._hdfs.within(LIMIT_S):
            self._wait_for_holder_state()
            return self._commit(value, free)

    def renew(self, holder: str, limit_s: float) -> bool:
        """Renew the lease. Return False when the node no longer belongs to the holder."""
        with self._hdfs.within(limit_s):
            now = self._snapshot()
            if now is None or now.pointer.holder != holder:
                return False
            self._hdfs.set_modified(self._value_path(now.pointer.token), now.modified_ms + 1)
            return True

    def release(self, holder: str, limit_s: float) -> None:
        """Remove the node if it still belongs to the holder."""
        with self._hdfs.within(limit_s):
            while (now := self._snapshot()) is not None and now.pointer.holder == holder:
                if self._exchange(now.pointer, now.pointer.gone()):
                    self._remove_values([now.pointer.token])

    def _commit(self, value: bytes, holder_of: Callable[[Pointer], str]) -> int:
        """Make `value` the next version. `holder_of` raises for an unsuitable pointer, or returns the next holder."""
        token = secrets.token_hex(8)
        written = False
        try:
            while True:
                now = self._present()
                present = now.pointer if now else NO_NODE
                fresh = present.followed_by(value, token, holder_of(present))
                if now is None:
                    if self._create(fresh, value):
                        return fresh.version
                    continue
                if not written:
                    written = True
                    self._hdfs.write(self._value_path(token), value)
                if self._exchange(present, fresh):
                    self._remove_values([present.token, *now.abandoned])
                    return fresh.version
        except StateUnavailableError:
            raise  # the outcome is unknown: the pointer may name the new value
        except StateError:
            self._remove_values([token] if written else [])
            raise

    def _create(self, fresh: Pointer, value: bytes) -> bool:
        """Create the folder of a new node. Return False when another writer has created it."""
        drafts = f"{self._store.root}/new"
        draft = f"{drafts}/{fresh.token}"
        self._hdfs.make_folder(draft)
        try:
            self._hdfs.write(f"{draft}/{value_name(fresh.token)}", value)
            self._hdfs.write(f"{draft}/{fresh.name}", b"")
            self._hdfs.make_folder(self._kind_folder)
            made = self._hdfs.move(draft, self.folder) or self._is_now(fresh)
        except StateUnavailableError:
            raise
        except StateError:
            self._remove([draft])
            raise
        self._remove([] if made else [draft])
        with contextlib.suppress(StateError):
            entries = self._hdfs.entries(drafts) or ()
            self._remove(f"{drafts}/{each.name}" for each in _abandoned(entries))
        return made

    def _exchange(self, present: Pointer, fresh: Pointer) -> bool:
        """Compare and set. Return False when the node has changed."""
        moved = self._hdfs.move(f"{self.folder}/{present.name}", f"{self.folder}/{fresh.name}")
        # After a lost answer the rename is sent to another name node, and fails because it was carried out.
        return moved or self._is_now(fresh)

    def _is_now(self, fresh: Pointer) -> bool:
        now = self._snapshot()
        return bool(fresh.token) and now is not None and now.pointer.token == fresh.token

    def _present(self) -> _Snapshot | None:
        """The snapshot, after removal of the node if its holder is dead; None when the node never existed."""
        while True:
            now = self._snapshot()
            if now is None or not now.pointer.holder:
                return now
            pointer = now.pointer
            state = self._store.leases.observe(self.folder, pointer.holder, now.mark)
            if state is not HolderState.ALIVE and not self._accepts_writes():
                self._store.leases.restart(self.folder)
                return now
            if state is not HolderState.DEAD:
                return now
            if self._exchange(pointer, pointer.gone()):
                self._remove_values([pointer.token])
                return _Snapshot(pointer.gone())

    def _accepts_writes(self) -> bool:
        """Whether HDFS can be written, so that a holder could renew its lease."""
        try:
            self._hdfs.make_folder(self._kind_folder)  # it exists, so nothing changes; safe mode refuses the request
        except StateError:
            return False
        return True

    def _wait_for_holder_state(self) -> None:
        """Wait until the present holder, if any, has renewed its lease or is declared dead."""
        first = self._present()
        pause = threading.Event()
        while first and first.pointer.holder:
            pause.wait(_POLL_S)
            now = self._present()
            if now is None or now.pointer.holder != first.pointer.holder or now.mark != first.mark:
                return

    def _snapshot(self) -> _Snapshot | None:
        entries = self._hdfs.entries(self.folder)
        if entries is None:
            return None
        pointers = [pointer for each in entries if (pointer := parse_pointer(each.name))]
        if not pointers:
            reason = "it has no pointer"
            raise self._garbled(reason)
        pointer = max(pointers, key=lambda each: each.version)
        values = {token: each for each in entries if (token := parse_value_name(each.name))}
        present = values.pop(pointer.token, None)
        old = tuple(each.name.partition(".")[2] for each in _abandoned([*values.values(), *filter(None, [present])]))
        abandoned = tuple(token for token in old if token != pointer.token)
        return _Snapshot(pointer, present.modified_ms if present else 0, abandoned)

    def _check(self, present: Pointer, expected: int | None) -> None:
        version = present.version if present.token else 0
        if expected is not None and expected != version:
            is_now = f"is at version {version}" if version else "does not exist"
            wanted = f"version {expected}" if expected else "no node"
            message = f"{self.label} {is_now}, but {wanted} was expected; read it again and retry"
            raise StateConflictError(message)

    def _value_path(self, token: str) -> str:
        return f"{self.folder}/{value_name(token)}"

    def _remove_values(self, tokens: Iterable[str]) -> None:
        self._remove(self._value_path(token) for token in tokens if token)

    def _remove(self, paths: Iterable[str]) -> None:
        """Remove files that no pointer names. Later writers remove the files for which this fails."""
        for path in paths:
            with contextlib.suppress(StateError):
                self._hdfs.remove(path)

    def _garbled(self, what: str) -> StateError:
        return StateError(
            f"{self.folder} in HDFS at {self._hdfs.url}: {what}, so somebody changed it by hand; "
            "if no topology of that name runs, remove the folder and submit again"
        )


def _abandoned(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries that are much older than the newest entry."""
    found = tuple(entries)
    newest_ms = max((each.modified_ms for each in found), default=0)
    return tuple(each for each in found if each.modified_ms < newest_ms - _ABANDONED_MS)

"""One node: a folder with a pointer and the value that it names, changed only by renaming the pointer.

    ROOT/<kind>/<topology>/node.…         the pointer (see `pointer`): always one, also when the node is gone, so that
                                          versions and epochs grow for ever
    ROOT/<kind>/<topology>/value.<token>  a value; written before the pointer names it, removed after it does not
    ROOT/new/<token>/                     the folder of a node that has never been, moved into its place when complete

Every invariant of a node is kept here. A listing shows a folder as it was at one instant, so there is no moment
without a pointer, and never two. What a killed writer left is removed by later ones when it is old by the clock of
HDFS, which gave all those times.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import Versioned
from heron_statemgr_hdfs.lives import Lives, Sign
from heron_statemgr_hdfs.pointer import NO_NODE, Pointer, parse_pointer, parse_value_name, value_name
from heron_statemgr_hdfs.web_hdfs import Entry, WebHdfs

__all__ = ["LIMIT_S", "Node", "Store"]

_ABANDONED_MS = 600_000  # a write takes ten seconds at most; what is older than all others by this is nobody's
_LOOK_S = 0.2
LIMIT_S = 9.0
"""Of each operation: the contract's longest block is 10 s."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where nodes are, and what this process knows of their holders."""

    hdfs: WebHdfs
    root: str
    lives: Lives


@dataclass(frozen=True, slots=True)
class _Sight:
    """A node's folder at one instant: the pointer, when its value was last changed, and values that are nobody's."""

    pointer: Pointer
    modified_ms: int = 0
    abandoned: tuple[str, ...] = ()

    @property
    def mark(self) -> object:
        """What changes when a holder renews its hold."""
        return (self.pointer.token, self.modified_ms)


class Node:
    """One node of a store; made anew for each operation."""

    def __init__(self, store: Store, kind: str, topology: str) -> None:
        self._store = store
        self._hdfs = store.hdfs
        self._kind_folder = f"{store.root}/{kind}"
        self.folder = f"{self._kind_folder}/{topology}"
        self.label = f"{kind}/{topology}"

    def read(self) -> Versioned | None:
        """The present value; a node whose holder is dead is removed and reads as None."""
        with self._hdfs.within(LIMIT_S):
            missed = ""
            while True:
                pointer = self.pointer()
                if not pointer.token:
                    return None
                value = self._hdfs.read(self._value_path(pointer.token))
                if value is not None and pointer.fits(value):
                    return Versioned(value, pointer.version)
                # It may have been replaced since the look; what is missing twice is missing.
                if pointer.token == missed:
                    raise self._garbled("its value is not there" if value is None else "its value was changed or cut")
                missed = pointer.token

    def pointer(self) -> Pointer:
        """What the node is now, without its value."""
        with self._hdfs.within(LIMIT_S):
            sight = self._present()
            return sight.pointer if sight else NO_NODE

    def write(self, value: bytes, expected: int | None) -> int:
        """Replaces the value if `expected` agrees, and returns its version. A live hold stays one."""

        def holder_of(present: Pointer) -> str:
            self._check(present, expected)
            return present.holder

        with self._hdfs.within(LIMIT_S):
            return self._commit(value, holder_of)

    def remove(self, expected: int | None) -> None:
        """Removes the node if `expected` agrees."""
        with self._hdfs.within(LIMIT_S):
            while True:
                sight = self._present()
                pointer = sight.pointer if sight else NO_NODE
                self._check(pointer, expected)
                if not pointer.token:
                    return
                if self._exchange(pointer, pointer.gone()):
                    self._tidy([pointer.token])
                    return

    def take(self, value: bytes, holder: str) -> int:
        """Makes the node one that is held, and returns its version.

        Raises:
            StateConflictError: when it is held and its holder shows that it lives.
        """

        def free(present: Pointer) -> str:
            if present.holder:
                message = f"{self.label} is held by another live process (in {self.folder})"
                raise StateConflictError(message)
            return holder

        with self._hdfs.within(LIMIT_S):
            self._await_verdict()
            return self._commit(value, free)

    def renew(self, holder: str, limit_s: float) -> bool:
        """Shows that the holder lives; False when the node is not its own any more."""
        with self._hdfs.within(limit_s):
            sight = self._sight()
            if sight is None or sight.pointer.holder != holder:
                return False
            self._hdfs.stamp(self._value_path(sight.pointer.token), sight.modified_ms + 1)
            return True

    def give_up(self, holder: str, limit_s: float) -> None:
        """Removes the node if it still belongs to the holder."""
        with self._hdfs.within(limit_s):
            while (sight := self._sight()) is not None and sight.pointer.holder == holder:
                if self._exchange(sight.pointer, sight.pointer.gone()):
                    self._tidy([sight.pointer.token])

    def _commit(self, value: bytes, holder_of: Callable[[Pointer], str]) -> int:
        """Makes `value` the next version; `holder_of` refuses what is there, or says whose the node will be."""
        token = secrets.token_hex(8)
        written = False
        try:
            while True:
                sight = self._present()
                present = sight.pointer if sight else NO_NODE
                fresh = present.followed_by(value, token, holder_of(present))
                if sight is None:
                    if self._create(fresh, value):
                        return fresh.version
                    continue
                if not written:
                    written = True
                    self._hdfs.write(self._value_path(token), value)
                if self._exchange(present, fresh):
                    self._tidy([present.token, *sight.abandoned])
                    return fresh.version
        except StateUnavailableError:
            raise  # the outcome is unknown: the value may be the present one
        except StateError:
            self._tidy([token] if written else [])
            raise

    def _create(self, fresh: Pointer, value: bytes) -> bool:
        """Makes the folder of a node that has never been; False when somebody else did."""
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
            self._drop([draft])
            raise
        self._drop([] if made else [draft])
        with contextlib.suppress(StateError):
            entries = self._hdfs.entries(drafts) or ()
            self._drop(f"{drafts}/{each.name}" for each in _abandoned(entries))
        return made

    def _exchange(self, present: Pointer, fresh: Pointer) -> bool:
        """Compare and set: False when the node is no longer what it was."""
        moved = self._hdfs.move(f"{self.folder}/{present.name}", f"{self.folder}/{fresh.name}")
        # With several name nodes a rename whose answer was lost is asked again, and finds its own work.
        return moved or self._is_now(fresh)

    def _is_now(self, fresh: Pointer) -> bool:
        sight = self._sight()
        return bool(fresh.token) and sight is not None and sight.pointer.token == fresh.token

    def _present(self) -> _Sight | None:
        """The folder, with the node gone if its holder is dead; None when the node has never been."""
        while True:
            sight = self._sight()
            if sight is None or not sight.pointer.holder:
                return sight
            pointer = sight.pointer
            sign = self._store.lives.look(self.folder, pointer.holder, sight.mark)
            if sign is not Sign.ALIVE and not self._takes_writes():
                self._store.lives.forget(self.folder)
                return sight
            if sign is not Sign.DEAD:
                return sight
            if self._exchange(pointer, pointer.gone()):
                self._tidy([pointer.token])
                return _Sight(pointer.gone())

    def _takes_writes(self) -> bool:
        """Whether HDFS is such that a holder could have renewed its hold."""
        try:
            self._hdfs.make_folder(self._kind_folder)  # which is there: nothing changes, but safe mode refuses
        except StateError:
            return False
        return True

    def _await_verdict(self) -> None:
        """Returns when the present holder, if there is one, has shown that it lives or was found dead."""
        first = self._present()
        pause = threading.Event()
        while first and first.pointer.holder:
            pause.wait(_LOOK_S)
            now = self._present()
            if now is None or now.pointer.holder != first.pointer.holder or now.mark != first.mark:
                return

    def _sight(self) -> _Sight | None:
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
        return _Sight(pointer, present.modified_ms if present else 0, abandoned)

    def _check(self, present: Pointer, expected: int | None) -> None:
        version = present.version if present.token else 0
        if expected is not None and expected != version:
            is_now = f"is at version {version}" if version else "does not exist"
            wanted = f"version {expected}" if expected else "no node"
            message = f"{self.label} {is_now}, but {wanted} was expected; read it again and retry"
            raise StateConflictError(message)

    def _value_path(self, token: str) -> str:
        return f"{self.folder}/{value_name(token)}"

    def _tidy(self, tokens: Iterable[str]) -> None:
        self._drop(self._value_path(token) for token in tokens if token)

    def _drop(self, paths: Iterable[str]) -> None:
        """Removes what no pointer names; what cannot be removed now is left to later writers."""
        for path in paths:
            with contextlib.suppress(StateError):
                self._hdfs.remove(path)

    def _garbled(self, what: str) -> StateError:
        return StateError(
            f"{self.folder} in HDFS at {self._hdfs.url}: {what}, somebody changed it by hand; "
            "remove the folder when no topology of that name runs, then submit again"
        )


def _abandoned(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Those that are much older than the newest."""
    found = tuple(entries)
    newest_ms = max((each.modified_ms for each in found), default=0)
    return tuple(each for each in found if each.modified_ms < newest_ms - _ABANDONED_MS)

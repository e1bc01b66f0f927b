"""Values of any size for state managers whose store takes only so much: compressed, and split over several nodes.

A value that fits is stored as it is. A larger one is compressed; if that does not fit either, it is cut into parts,
each a node of the kind PART under a name that is never used again, and the node itself names them:

    <marker>zlib\\n<compressed>                   compressed
    <marker>plain\\n<value>                       a value that itself begins with the marker
    <marker>parts\\n{"names": […], "sha256": …}   compressed, and split

The parts are written before the node and removed after it, so the node changes at once, with its version: whoever
reads it has the old value or the new. A writer that is killed in between leaves parts that nobody refers to; they go
with the node.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import secrets
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Self

import msgspec

from heron import clock
from heron.driver_kit.large_watch import REREAD_S, LargeWatch
from heron.driver_kit.loading import open_driver
from heron.errors import PluginError, StateError, StateUnavailableError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch

__all__ = ["LargeValues", "open_statemgr"]

_MARKER = b"\0heron-value 1 "
_ZLIB = _MARKER + b"zlib\n"
_PLAIN = _MARKER + b"plain\n"
_PARTS = _MARKER + b"parts\n"
_SETTLED_S = 5.0  # a writer puts back within this what a removal at the same moment took from it

_log = logging.getLogger(__name__)


class _Layout(msgspec.Struct, frozen=True):
    """What the node of a split value says: its parts in order, and the checksum of what they are together."""

    names: tuple[str, ...]
    sha256: str


def open_statemgr(ref: DriverRef) -> StateManager:
    """The state manager that `ref` names, for values of any size.

    Raises:
        PluginError, ConfigError: as `heron.driver_kit.loading.open_driver` does.
    """
    driver = open_driver(ref, StateManager)
    return driver if driver.max_value_bytes is None else LargeValues(driver, driver.max_value_bytes)


class LargeValues(StateManager):
    """Keeps the contract of the state manager that it stands before, and takes values of any size.

    Each part is a request of its own: a call may block 10 s for each.
    """

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Not chosen by a profile; see `open_statemgr`."""
        del options
        message = "LargeValues stands before a driver, and is none: name that driver"
        raise PluginError(message)

    def __init__(self, inner: StateManager, limit_bytes: int) -> None:
        """`limit_bytes` is the largest value that `inner` takes; at least 16 KiB, for a node has to name its parts."""
        self._inner = inner
        self._limit_bytes = limit_bytes
        self._guard = threading.Lock()
        self._watches: set[LargeWatch] = set()

    def check(self, timeout_s: float) -> str:
        return self._inner.check(timeout_s)

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        return self._settled(kind, topology, self._inner.get(kind, topology), threading.Event())

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        former = self._parts_of(kind, topology)
        node, parts = self._laid_out(kind, topology, value)
        for name, part in parts.items():
            self._inner.set(NodeKind.PART, name, part)
        try:
            version = self._inner.set(kind, topology, node, expected=expected)
        except StateUnavailableError:
            raise  # it may have been written
        except StateError:
            self._remove_parts(parts)
            raise
        if parts:
            stored = frozenset(self._inner.list(NodeKind.PART))
            for name, part in parts.items():
                if name not in stored:  # `delete` came between
                    self._inner.set(NodeKind.PART, name, part)
        self._remove_parts(name for name in former if name not in parts)
        return version

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        known = self._parts_of(kind, topology)
        self._inner.delete(kind, topology, expected=expected)
        prefix = _part_prefix(kind, topology)
        names = [name for name in self._inner.list(NodeKind.PART) if name.startswith(prefix)]
        # The others are of a writer that was killed, or of one that is about to write a node that names them.
        others = {name: self._readable(NodeKind.PART, name) for name in names if name not in known}
        self._remove_parts(names)
        for name in self._parts_of(kind, topology) if others else ():
            if (part := others.get(name)) is not None:
                self._inner.set(NodeKind.PART, name, part.value)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        return self._inner.list(kind)

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        watch = LargeWatch(functools.partial(self._settled, kind, topology), on_change, self._forget)
        with self._guard:
            self._watches.add(watch)
        try:
            watch.begin(lambda tell: self._inner.watch(kind, topology, tell))
        except BaseException:
            self._forget(watch)
            raise
        return watch

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        node, parts = self._laid_out(kind, topology, value)
        if parts:
            message = (
                f"the value of a held node ({kind.value}/{topology}) has {len(value)} bytes, too many for one node of "
                f"this store, which takes {self._limit_bytes}"
            )
            raise StateError(message)
        return self._inner.hold(kind, topology, node)

    def close(self) -> None:
        with self._guard:
            watches = tuple(self._watches)
        for watch in watches:
            watch.end()  # one that reads parts would keep the store from closing
        self._inner.close()

    def _forget(self, watch: LargeWatch) -> None:
        with self._guard:
            self._watches.discard(watch)

    def _settled(
        self, kind: NodeKind, topology: str, present: Versioned | None, stop: threading.Event
    ) -> Versioned | None:
        """The whole value of a node that was read as `present`, or a later one.

        Raises:
            StateError: when a part is missing for good, or until `stop` was set.
        """
        deadline_s = clock.monotonic_s() + _SETTLED_S
        while present is not None:
            value = self._whole(present.value, f"{kind.value}/{topology}")
            if value is not None:
                return Versioned(value, present.version)
            before, present = present, self._inner.get(kind, topology)
            if present is None or present.version != before.version:
                continue  # it was replaced while we read
            # Its writer may be about to put back what a removal took.
            if stop.wait(REREAD_S) or clock.monotonic_s() > deadline_s:
                raise StateError(_incomplete(f"{kind.value}/{topology}"))
        return None

    def _laid_out(self, kind: NodeKind, topology: str, value: bytes) -> tuple[bytes, dict[str, bytes]]:
        """What the node holds, and the parts by name."""
        if len(value) <= self._limit_bytes and not value.startswith(_MARKER):
            return value, {}
        if len(_PLAIN) + len(value) <= self._limit_bytes:
            return _PLAIN + value, {}
        packed = zlib.compress(value)
        if len(_ZLIB) + len(packed) <= self._limit_bytes:
            return _ZLIB + packed, {}
        prefix = f"{_part_prefix(kind, topology)}{secrets.token_hex(8)}"
        cuts = range(0, len(packed), self._limit_bytes)
        parts = {f"{prefix}-{number}": packed[cut : cut + self._limit_bytes] for number, cut in enumerate(cuts)}
        return _PARTS + msgspec.json.encode(_Layout(tuple(parts), hashlib.sha256(packed).hexdigest())), parts

    def _whole(self, stored: bytes, place: str) -> bytes | None:
        """The value; None when a part is not there (any more)."""
        if not stored.startswith(_MARKER):
            return stored
        if stored.startswith(_PLAIN):
            return stored[len(_PLAIN) :]
        try:
            if stored.startswith(_ZLIB):
                return zlib.decompress(stored[len(_ZLIB) :])
            layout = msgspec.json.decode(stored[len(_PARTS) :], type=_Layout)
            found = [self._inner.get(NodeKind.PART, name) for name in layout.names]
            packed = b"".join(part.value for part in found if part is not None)
            if None in found:
                return None
            if hashlib.sha256(packed).hexdigest() != layout.sha256:
                raise StateError(_incomplete(place))
            return zlib.decompress(packed)
        except (msgspec.MsgspecError, zlib.error) as error:
            raise StateError(_incomplete(place)) from error

    def _parts_of(self, kind: NodeKind, topology: str) -> tuple[str, ...]:
        present = self._readable(kind, topology)
        if present is None or not present.value.startswith(_PARTS):
            return ()
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(present.value[len(_PARTS) :], type=_Layout).names
        return ()

    def _readable(self, kind: NodeKind, name: str) -> Versioned | None:
        """The node; None also where it is garbled, which writing it anew repairs."""
        try:
            return self._inner.get(kind, name)
        except StateUnavailableError:
            raise
        except StateError:
            return None

    def _remove_parts(self, names: Iterable[str]) -> None:
        try:
            for name in names:
                self._inner.delete(NodeKind.PART, name)
        except StateError as error:
            _log.warning("parts of a former value stay in the store until their topology is gone: %s", error)


def _part_prefix(kind: NodeKind, topology: str) -> str:
    """What the names of a node's parts begin with; short, however long the topology's is."""
    return hashlib.sha256(f"{kind.value}/{topology}".encode()).hexdigest()[:32] + "-"


def _incomplete(place: str) -> str:
    return (
        f"{place}: a part of the value is missing or differs from its checksum, it was changed by hand; "
        "kill the topology, then submit it again"
    )

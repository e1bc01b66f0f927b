"""Stores values of any size in a state manager whose store limits the size: compresses and splits them.

A value that fits is stored unchanged. A larger value is compressed. If it is still too large, it is split into parts.
Each part is a node of the kind PART with a name that is never reused, and the node itself lists the parts:

    <marker>zlib\\n<compressed>                   compressed
    <marker>plain\\n<value>                       a value that begins with the marker
    <marker>parts\\n{"names": […], "sha256": …}   compressed, and split

The parts are written before the node and removed after it. So the node and its version change at once, and a reader
gets the old value or the new. A writer that is killed meanwhile leaves parts that no node lists; they are removed
together with the node.
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
from heron.spi.typed_values import decode_json

__all__ = ["LargeValues", "open_statemgr"]

_MARKER = b"\0heron-value 1 "
_ZLIB = _MARKER + b"zlib\n"
_PLAIN = _MARKER + b"plain\n"
_PARTS = _MARKER + b"parts\n"
_MOST_BYTES = 1 << 28
"""The largest value: a plan must also fit into a control message, which has this limit after decompression."""

_COMPLETE_WITHIN_S = 5.0  # within this time a writer restores parts that a concurrent removal took

_log = logging.getLogger(__name__)


class _Layout(msgspec.Struct, frozen=True):
    """The node of a split value: its parts in order, and the checksum of the joined parts."""

    names: tuple[str, ...]
    sha256: str


def open_statemgr(ref: DriverRef) -> StateManager:
    """Open the state manager that `ref` names, for values of any size.

    Raises:
        PluginError, ConfigError: as `heron.driver_kit.loading.open_driver` does.
    """
    driver = open_driver(ref, StateManager)
    return driver if driver.max_value_bytes is None else LargeValues(driver, driver.max_value_bytes)


class LargeValues(StateManager):
    """Wraps a state manager, keeps its contract, and takes values of any size.

    Each part is a separate request; a call may block 10 s for each.
    """

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """A profile cannot choose it; see `open_statemgr`."""
        del options
        message = "LargeValues wraps a driver and is not a driver itself; name the driver"
        raise PluginError(message)

    def __init__(self, inner: StateManager, limit_bytes: int) -> None:
        """`limit_bytes` is the largest value that `inner` takes; at least 16 KiB, because a node lists its parts."""
        self._inner = inner
        self._limit_bytes = limit_bytes
        self._guard = threading.Lock()
        self._watches: set[LargeWatch] = set()

    def check(self, timeout_s: float) -> str:
        return self._inner.check(timeout_s)

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        return self._complete_value(kind, topology, self._inner.get(kind, topology), threading.Event())

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        former = self._parts_of(kind, topology)
        node, parts = self._laid_out(kind, topology, value)
        for name, part in parts.items():
            self._inner.set(NodeKind.PART, name, part)
        try:
            version = self._inner.set(kind, topology, node, expected=expected)
        except StateUnavailableError:
            raise  # the value may have been written
        except StateError:
            self._remove_parts(parts)
            raise
        if parts:
            stored = frozenset(self._inner.list(NodeKind.PART))
            for name, part in parts.items():
                if name not in stored:  # a concurrent `delete` removed it
                    self._inner.set(NodeKind.PART, name, part)
        self._remove_parts(name for name in former if name not in parts)
        return version

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        known = self._parts_of(kind, topology)
        self._inner.delete(kind, topology, expected=expected)
        prefix = _part_prefix(kind, topology)
        names = [name for name in self._inner.list(NodeKind.PART) if name.startswith(prefix)]
        # The others belong to a writer that was killed, or to a writer that is about to write a node that lists them.
        others = {name: self._readable(NodeKind.PART, name) for name in names if name not in known}
        self._remove_parts(names)
        for name in self._parts_of(kind, topology) if others else ():
            if (part := others.get(name)) is not None:
                self._inner.set(NodeKind.PART, name, part.value)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        return self._inner.list(kind)

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        watch = LargeWatch(functools.partial(self._complete_value, kind, topology), on_change, self._forget)
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
            watch.end()  # a watch that reads parts would block the closing of the store
        self._inner.close()

    def _forget(self, watch: LargeWatch) -> None:
        with self._guard:
            self._watches.discard(watch)

    def _complete_value(
        self, kind: NodeKind, topology: str, present: Versioned | None, stop: threading.Event
    ) -> Versioned | None:
        """Return the complete value of a node that was read as `present`, or a later value.

        Raises:
            StateError: when a part is missing for good, or was missing until `stop` was set.
        """
        deadline_s = clock.monotonic_s() + _COMPLETE_WITHIN_S
        while present is not None:
            value = self._whole(present.value, f"{kind.value}/{topology}")
            if value is not None:
                return Versioned(value, present.version)
            before, present = present, self._inner.get(kind, topology)
            if present is None or present.version != before.version:
                continue  # another writer replaced it meanwhile
            # The writer may be about to restore parts that a removal took.
            if stop.wait(REREAD_S) or clock.monotonic_s() > deadline_s:
                raise StateError(_incomplete(f"{kind.value}/{topology}"))
        return None

    def _laid_out(self, kind: NodeKind, topology: str, value: bytes) -> tuple[bytes, dict[str, bytes]]:
        """The value of the node, and the parts by name."""
        if len(value) > _MOST_BYTES:
            message = (
                f"{kind.value}/{topology}: a value of {len(value)} bytes exceeds the limit of {_MOST_BYTES} bytes; use "
                "fewer tasks, streams or values in the configuration"
            )
            raise StateError(message)
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
        """The value; None when a part is missing."""
        if not stored.startswith(_MARKER):
            return stored
        if stored.startswith(_PLAIN):
            return stored[len(_PLAIN) :]
        try:
            if stored.startswith(_ZLIB):
                return _decompressed(stored[len(_ZLIB) :], place)
            layout = decode_json(stored[len(_PARTS) :], _Layout)
            packed = self._joined(layout.names, place)
            if packed is None:
                return None
            if hashlib.sha256(packed).hexdigest() != layout.sha256:
                raise StateError(_incomplete(place))
            return _decompressed(packed, place)
        except (msgspec.MsgspecError, zlib.error) as error:
            raise StateError(_incomplete(place)) from error

    def _joined(self, names: Iterable[str], place: str) -> bytes | None:
        """The parts in one piece; None when one is missing."""
        parts, size_bytes = [], 0
        for name in names:
            part = self._inner.get(NodeKind.PART, name)
            if part is None:
                return None
            size_bytes += len(part.value)
            if size_bytes > _MOST_BYTES:
                raise StateError(_too_large(place))
            parts.append(part.value)
        return b"".join(parts)

    def _parts_of(self, kind: NodeKind, topology: str) -> tuple[str, ...]:
        present = self._readable(kind, topology)
        if present is None or not present.value.startswith(_PARTS):
            return ()
        with contextlib.suppress(msgspec.MsgspecError):
            return decode_json(present.value[len(_PARTS) :], _Layout).names
        return ()

    def _readable(self, kind: NodeKind, name: str) -> Versioned | None:
        """The node; None also when it is garbled, since the next write repairs it."""
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
            _log.warning("parts of a former value stay in the store until the topology is removed: %s", error)


def _decompressed(data: bytes, place: str) -> bytes:
    decompressor = zlib.decompressobj()
    value = decompressor.decompress(data, _MOST_BYTES)
    if decompressor.unconsumed_tail:
        raise StateError(_too_large(place))
    if not decompressor.eof or decompressor.unused_data:
        raise StateError(_incomplete(place))
    return value


def _too_large(place: str) -> str:
    return (
        f"{place}: the value takes more than the limit of {_MOST_BYTES} bytes; it was changed by hand: kill the "
        "topology, then submit it again"
    )


def _part_prefix(kind: NodeKind, topology: str) -> str:
    """The prefix of the names of a node's parts; short even for a long topology name."""
    return hashlib.sha256(f"{kind.value}/{topology}".encode()).hexdigest()[:32] + "-"


def _incomplete(place: str) -> str:
    return (
        f"{place}: a part of the value is missing or does not match its checksum; "
        "kill the topology, then submit it again"
    )

"""Keeps views in Redis. Each change that others may see is one call of a script (`view.lua`).

Many values are sent in pieces that nobody sees, and then become visible in one step.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar

from heron.errors import StoreError
from heron.spi.options import decode_options
from heron.spi.store import Batch, Reading, SpanKey, ViewStore
from heron_driver_kit.view_names import check_batch, check_entries, check_key, check_view, later_batch, removed_batch
from heron_store_redis.options import RedisOptions
from heron_store_redis.server import Connection, Server

__all__ = ["RedisViewStore"]

T = TypeVar("T")

_ENTRIES: Final = 1000  # some milliseconds of the server, which does nothing else meanwhile
_PIECE_BYTES: Final = 1024 * 1024
_SENT_BYTES: Final = 4 * 1024 * 1024  # the server's memory for requests
_STEP: Final = (_ENTRIES, _SENT_BYTES)
_EXPIRES_S: Final = 600  # much longer than a call; a piece that is not complete then has no writer any more
_KEYS_AT_MOST: Final = 500_000  # Redis takes about a million arguments
_VERSION: Final = 19
"""The digits of a version, and of a writer."""
_LEAST_US: Final = -(2**63)


class RedisViewStore(ViewStore):
    """Keys of a Redis server, for processes on every machine that can reach it."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server", "shared"})
    options_type: ClassVar[type] = RedisOptions

    def __init__(self, options: RedisOptions) -> None:
        self._options = options
        self._server = Server(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects, and checks the server's settings."""
        return cls(decode_options(options, RedisOptions, "store"))

    def check(self, timeout_s: float) -> str:
        """Log in, in a connection of its own, and check the server's settings."""
        return f"Redis {self._server.check(timeout_s)} at {self._options.host}:{self._options.port}"

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """Send the values of each span as a piece."""
        check_view(view)
        check_entries(view, ((key, value) for (_, key), value in values.items()))
        number = _digits(version)
        spans: dict[bytes, list[tuple[bytes, bytes]]] = {}
        for (span_us, key), value in values.items():
            spans.setdefault(_time(span_us), []).append((key, number + value))

        def work(connection: Connection) -> None:
            pieces = {b"%s:%s" % (_id(), span): entries for span, entries in spans.items()}
            sizes = self._send(connection, view, pieces)
            if connection.call(self._base(view), b"stage", _digits(writer), number, *sizes) != b"staged":
                raise _expired(view)

        if values:
            self._run(view, work)

    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """Show the pieces in one step, and merge them in small ones."""
        check_view(view)
        arguments = (_digits(writer), _digits(version), _time(at_us))

        def work(connection: Connection) -> None:
            connection.call(self._base(view), b"publish", *arguments)
            self._merge(connection, view, b"merge")

        self._run(view, work)

    def discard(self, view: str, writer: int, above: int) -> None:
        """Remove the pieces."""
        check_view(view)
        arguments = (_digits(writer), _digits(above))
        self._run(view, lambda connection: connection.call(self._base(view), b"discard", *arguments))

    def retire(self, view: str, writers: int, version: int) -> None:
        """Show or remove the pieces, and remove the times."""
        check_view(view)
        arguments = (_digits(writers), _digits(version))

        def work(connection: Connection) -> None:
            connection.call(self._base(view), b"retire", *arguments)
            self._merge(connection, view, b"merge")

        self._run(view, work)

    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """Send the values as a piece, and merge it into the batch: parts have no keys in common."""
        del part
        check_batch(view, batch)
        check_entries(view, values.items())
        name = _name(batch)

        def work(connection: Connection) -> None:
            base = self._base(view)
            if not _is_open(view, batch, connection.call(base, b"state", name)):
                return
            sizes = self._send(connection, view, {_id(): list(values.items())} if values else {})
            if _is_open(view, batch, connection.call(base, b"stage_batch", name, *sizes)):
                self._merge(connection, view, b"merge_batch", name)

        self._run(view, work)

    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """Note the part; with the last one, change which batch is visible, and unlink what it covers."""
        check_batch(view, batch)
        name = _name(batch)

        def work(connection: Connection) -> None:
            while True:
                answer = connection.call(self._base(view), b"publish_batch", name, part, parts)
                if not _is_open(view, batch, answer) or answer[0] != b"unmerged":
                    return
                self._merge(connection, view, b"merge_batch", name)

        self._run(view, work)

    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """Look all keys up in one call of the script."""
        check_view(view)
        wanted = list(dict.fromkeys(keys))
        for key in wanted:
            check_key(view, key)
        if len(wanted) > _KEYS_AT_MOST:
            msg = f"view {view}: {len(wanted)} keys at once, the limit is {_KEYS_AT_MOST} keys; read some at a time"
            raise StoreError(msg)
        answer = self._run(view, lambda connection: connection.call(self._base(view), b"read", *wanted))
        visible, oldest, history, *spans = answer
        live: dict[bytes, list[bytes]] = {}
        for found in spans:
            for key, value in zip(wanted, found, strict=True):
                if value is not None:
                    live.setdefault(key, []).append(value[_VERSION:])
        kept = zip(wanted, history, strict=False)  # without a batch there are no values
        return Reading(
            None if visible is None else _us(visible[:20]),
            {key: value for key, value in kept if value is not None},
            live,
            None if oldest is None else _us(oldest),
        )

    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """Merge the keys of all tables; Redis compares them byte by byte."""
        check_view(view)
        found = self._run(view, lambda connection: connection.call(self._base(view), b"keys", after, limit))
        return sorted(set(itertools.chain.from_iterable(found)))[:limit]

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def drop(self, view: str) -> None:
        """Unlink all keys of the view."""
        check_view(view)
        self._run(view, lambda connection: connection.call(self._base(view), b"drop"))

    def _base(self, view: str) -> bytes:
        """What the view's keys begin with. The braces keep them on one server if they move to a cluster."""
        return b"{%s:%s}" % (self._options.prefix.encode(), view.encode())

    def _run(self, view: str, work: Callable[[Connection], T]) -> T:
        return self._server.run(f"view {view}", work)

    def _send(
        self, connection: Connection, view: str, pieces: Mapping[bytes, list[tuple[bytes, bytes]]]
    ) -> list[bytes | int]:
        """Send pieces; return their names and sizes, as the operation expects them that makes them permanent."""
        waiting: list[tuple[bytes | int, ...]] = []
        size_bytes = 0
        for name, entries in pieces.items():
            for part in _parts(entries):
                waiting.append((b"put", name, _EXPIRES_S, *itertools.chain.from_iterable(part)))
                size_bytes += sum(len(key) + len(value) for key, value in part)
                if size_bytes >= _SENT_BYTES or len(waiting) >= _ENTRIES:
                    connection.calls(self._base(view), waiting)
                    waiting, size_bytes = [], 0
        if waiting:
            connection.calls(self._base(view), waiting)
        return [word for name, entries in pieces.items() for word in (name, len(entries))]

    def _merge(self, connection: Connection, view: str, operation: bytes, *arguments: bytes) -> None:
        """Merge pieces. A killed process leaves some, which the next one merges."""
        while connection.call(self._base(view), operation, *_STEP, *arguments):
            pass


def _is_open(view: str, batch: Batch, answer: list[Any]) -> bool:
    """Whether the batch was not visible at the call.

    Raises:
        StoreError: when it was refused.
    """
    match answer[0]:
        case b"later":
            raise later_batch(view, batch, _us(answer[1]))
        case b"removed":
            raise removed_batch(view, batch)
        case b"expired":
            raise _expired(view)
    return bool(answer[0] != b"visible")


def _parts(entries: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Divide entries among requests of a bounded size."""
    part: list[tuple[bytes, bytes]] = []
    size_bytes = 0
    for entry in entries:
        if part and (len(part) >= _ENTRIES or size_bytes + len(entry[1]) > _PIECE_BYTES):
            yield part
            part, size_bytes = [], 0
        part.append(entry)
        size_bytes += len(entry[0]) + len(entry[1])
    if part:
        yield part


def _expired(view: str) -> StoreError:
    msg = f"view {view}: the server lost values before all were there; check whether it was restarted, and try again"
    return StoreError(msg)


def _id() -> bytes:
    return secrets.token_hex(16).encode()


def _name(batch: Batch) -> bytes:
    return b"%s:%s" % (_time(batch.until_us), batch.run.encode())


def _digits(number: int) -> bytes:
    return b"%019d" % number


def _time(us: int) -> bytes:
    return b"%020d" % (us - _LEAST_US)


def _us(digits: bytes) -> int:
    return int(digits) + _LEAST_US

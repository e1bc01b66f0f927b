"""The entries of one task in an LMDB database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import lmdb

from heron.errors import KeyedStateError
from heron.spi.state import StateView, TaskStore

__all__ = ["LmdbTaskStore", "LmdbView"]

_PART_BYTES: Final = 4

T = TypeVar("T")


class LmdbView(StateView):
    """A read transaction: pages that it sees are not written until it ends."""

    def __init__(self, transaction: lmdb.Transaction, place: Path) -> None:
        self._transaction = transaction
        self._place = place

    def scan(self, part: int) -> Iterator[tuple[bytes, bytes]]:
        """Read from the first key of the part on, until the keys of another part come."""
        prefix = _prefix(part)
        with _translated(self._place), self._transaction.cursor() as cursor:
            if not cursor.set_range(prefix):
                return
            for key, value in cursor:
                if key[:_PART_BYTES] != prefix:
                    return
                yield bytes(key[_PART_BYTES:]), bytes(value)

    def close(self) -> None:
        """End the transaction."""
        self._transaction.abort()


class LmdbTaskStore(TaskStore):
    """Each write is one transaction. A read transaction that is renewed after it serves `get`."""

    def __init__(self, environment: lmdb.Environment, place: Path, max_bytes: int) -> None:
        """`place` is the folder of the files, for messages; `max_bytes` is the limit of the file, in bytes."""
        self._environment = environment
        self._place = place
        self._max_bytes = max_bytes
        self._reader = environment.begin()
        self._closed = False

    def get(self, part: int, key: bytes) -> bytes | None:
        """Read from the newest state."""
        try:
            return self._reader.get(part.to_bytes(_PART_BYTES, "big") + key)
        except lmdb.Error as error:
            raise _error(self._place, error) from error

    def write(self, changes: Mapping[tuple[int, bytes], bytes | None]) -> None:
        """Write in one transaction, in the order of the keys: neighbours are on the same page."""
        records = sorted((_prefix(part) + key, value) for (part, key), value in changes.items())

        def put(transaction: lmdb.Transaction) -> None:
            for key, value in records:
                if value is None:
                    transaction.delete(key)
                else:
                    transaction.put(key, value)

        self._change(put)

    def drop(self, part: int) -> None:
        """Delete key by key, in one transaction."""
        prefix = _prefix(part)

        def delete(transaction: lmdb.Transaction) -> None:
            with transaction.cursor() as cursor:
                found = cursor.set_range(prefix)
                while found and cursor.key()[:_PART_BYTES] == prefix:
                    found = cursor.delete()  # moves to the next key

        self._change(delete)

    def view(self) -> LmdbView:
        """Begin a read transaction."""
        with _translated(self._place):
            return LmdbView(self._environment.begin(), self._place)

    def close(self) -> None:
        """Close the database. Its files have no names, so the system removes them."""
        if not self._closed:
            self._closed = True
            self._reader.abort()
            self._environment.close()

    def _change(self, change: Callable[[lmdb.Transaction], None]) -> None:
        self._reader.abort()  # so that this transaction may use pages of the former state
        try:
            with _translated(self._place, self._max_bytes), self._environment.begin(write=True) as transaction:
                change(transaction)
        finally:
            self._reader = self._environment.begin()


def _prefix(part: int) -> bytes:
    return part.to_bytes(_PART_BYTES, "big")


@contextmanager
def _translated(place: Path, max_bytes: int = 0) -> Iterator[None]:
    try:
        yield
    except lmdb.MapFullError as error:
        msg = (
            f"state in {place}: the task has reached the limit of {max_bytes} bytes (state.max_bytes); raise it, or "
            "use more tasks"
        )
        raise KeyedStateError(msg) from error
    except lmdb.Error as error:
        raise _error(place, error) from error


def _error(place: Path, error: lmdb.Error) -> KeyedStateError:
    return KeyedStateError(f"state in {place}: {error}; free some space there, or choose another state.folder")

"""One node: a value file, changed only under the node's write lock and only by rename.

    ROOT/<kind>/<topology>          the record (see `record`); present while the node exists
    ROOT/<kind>/.<topology>.lock    flock: the write lock. Content: the node's last version, kept when the node goes,
                                    so that versions and epochs grow for ever
    ROOT/<kind>/.<topology>.held    flock: taken for as long as the holder of the node lives
    ROOT/<kind>/.<topology>.tmp     a record being written; what a killed writer left is overwritten by the next

Every invariant of a node is kept here. Readers of ordinary nodes take no lock: a rename is seen whole or not at all.
Whether a holder lives is asked under the write lock, as asking takes the holder's lock for a moment. Nothing is
forced to disk: after a power cut no process that used the state is left, and a file that was cut then is detected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron_statemgr_localfs.file_lock import exclusive, try_exclusive
from heron_statemgr_localfs.os_errors import translated
from heron_statemgr_localfs.record import HEADER_LIMIT_BYTES, Header, Record, decode, decode_header, encode
from heron_statemgr_localfs.root_folder import vanished

__all__ = ["Node"]

_COUNTER_DIGITS = 20


class Node:
    """The files of one node; made anew for each operation, keeps nothing open."""

    __slots__ = ("_held", "_label", "_lock", "_root", "_tmp", "path")

    def __init__(self, root: Path, kind: str, topology: str) -> None:
        folder = root / kind
        self._root = root
        self._label = f"{kind}/{topology}"
        self.path = folder / topology
        self._lock = folder / f".{topology}.lock"
        self._held = folder / f".{topology}.held"
        self._tmp = folder / f".{topology}.tmp"

    def read(self) -> Record | None:
        """The present record; a node whose holder is gone is removed and reads as None."""
        with translated("read", self.path):
            record = self._record()
            if record is None or not record.holder:
                return record
            with self._locked() as counter:
                record = self._record()
                if record is not None and record.holder and self._reap(counter, record.version):
                    return None
                return record

    def exists(self) -> bool:
        """Whether `read` finds a node, without reading the value; a garbled one is there too."""
        with translated("read", self.path):
            header = self._header_or_garbled(None)
            if header is None or not header.holder:
                return header is not None
            with self._locked() as counter:
                return self._present(counter) is not None

    def write(self, value: bytes, expected: int | None) -> int:
        """Replaces the record if `expected` agrees, and returns its new version. A live hold stays one."""
        with translated("write", self.path), self._locked() as counter:
            header = self._present(counter)
            self._check(header, expected)
            version = self._next_version(counter, header)
            self._replace(counter, Record(version, value, header.holder if header else ""))
            return version

    def remove(self, expected: int | None) -> None:
        """Removes the node if `expected` agrees."""
        with translated("remove", self.path):
            if self._header_or_garbled(None) is None:
                self._check(None, expected)
                return
            with self._locked() as counter:
                header = self._present(counter)
                self._check(header, expected)
                if header is not None:
                    self._unlink(counter, header.version)
                    if header.holder:  # its hold is lost, and another may take the node at once
                        self._held.unlink(missing_ok=True)

    def take(self, value: bytes, token: str) -> tuple[int, int]:
        """Makes the node a held one and returns its version and the descriptor that is the hold.

        Raises:
            StateConflictError: when a live process, this one included, holds it.
        """
        with translated("hold", self.path), self._locked() as counter:
            descriptor = try_exclusive(self._held)
            if descriptor is None:
                message = f"{self._label} is held by another live process (lock file {self._held})"
                raise StateConflictError(message)
            try:
                version = self._next_version(counter, self._header_or_garbled(counter))
                self._replace(counter, Record(version, value, token))
            except BaseException:
                os.close(descriptor)
                raise
            return version, descriptor

    def held_by(self, token: str) -> bool:
        """Whether the node exists and belongs to the hold with this token. StateError when it is damaged."""
        with translated("read", self.path):
            record = self._record()
        return record is not None and record.holder == token

    def restore(self, version: int, value: bytes, token: str) -> None:
        """Writes a hold's record again where it is damaged: the same version, as nothing has changed."""
        with translated("write", self.path), self._locked() as counter:
            try:
                self._record()
            except StateUnavailableError:
                raise
            except StateError:
                self._replace(counter, Record(version, value, token))

    def give_up(self, token: str, descriptor: int) -> None:
        """Ends the hold; removes the node if it still belongs to it."""
        try:
            with translated("release", self.path), self._locked() as counter:
                header = self._header()
                if header is not None and header.holder == token:
                    self._unlink(counter, header.version)
                if self._held.exists() and os.path.samestat(self._held.stat(), os.fstat(descriptor)):
                    self._held.unlink()
        finally:
            os.close(descriptor)

    def make_folder(self) -> None:
        """Makes the folder of the node's kind, if it is absent."""
        with translated("make", self.path.parent):
            self._make_folder()

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError as error:
            raise self._vanished() from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._make_folder()
        with exclusive(self._lock) as counter:
            yield counter

    def _record(self) -> Record | None:
        data = self._data(None)
        return None if data is None else decode(data, str(self.path))

    def _header(self) -> Header | None:
        data = self._data(HEADER_LIMIT_BYTES)
        return None if data is None else decode_header(data, str(self.path))

    def _data(self, limit: int | None) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                return file.read(limit)
        except FileNotFoundError:
            if not self._root.is_dir():
                raise self._vanished() from None
            return None

    def _header_or_garbled(self, counter: int | None) -> Header | None:
        """The header; a garbled one counts as the version that the counter knows, so that a write repairs the node."""
        try:
            return self._header()
        except StateUnavailableError:
            raise
        except StateError:
            return Header(max(_read_counter(counter) if counter is not None else 0, 1), "", 0, 0, 0)

    def _present(self, counter: int) -> Header | None:
        """The header; None also when the node's holder is gone, and the node with it. Under the write lock."""
        header = self._header_or_garbled(counter)
        return None if header is not None and header.holder and self._reap(counter, header.version) else header

    def _reap(self, counter: int, version: int) -> bool:
        """Removes the node if nobody holds its lock any more; says whether it did. Under the write lock."""
        descriptor = try_exclusive(self._held)
        if descriptor is None:
            return False
        try:
            self._unlink(counter, version)
            self._held.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
        return True

    def _unlink(self, counter: int, version: int) -> None:
        _write_counter(counter, max(_read_counter(counter), version))
        self.path.unlink(missing_ok=True)

    def _check(self, header: Header | None, expected: int | None) -> None:
        present = header.version if header is not None else 0
        if expected is not None and expected != present:
            is_now = f"is at version {present}" if present else "does not exist"
            wanted = f"version {expected}" if expected else "no node"
            message = f"{self._label} {is_now}, but {wanted} was expected; read it again and retry"
            raise StateConflictError(message)

    def _next_version(self, counter: int, header: Header | None) -> int:
        return max(_read_counter(counter), header.version if header is not None else 0) + 1

    def _replace(self, counter: int, record: Record) -> None:
        # The counter goes first: killed in between, a version is skipped, but none is ever given twice.
        _write_counter(counter, max(_read_counter(counter), record.version))
        try:
            descriptor = os.open(self._tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), encode(record))
            self._tmp.replace(self.path)
        except OSError:
            self._tmp.unlink(missing_ok=True)
            raise

    def _vanished(self) -> StateUnavailableError:
        return StateUnavailableError(vanished(self._root))


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_counter(descriptor: int) -> int:
    digits = os.pread(descriptor, _COUNTER_DIGITS, 0)
    return int(digits) if digits.isdigit() else 0


def _write_counter(descriptor: int, version: int) -> None:
    os.pwrite(descriptor, b"%0*d" % (_COUNTER_DIGITS, version), 0)

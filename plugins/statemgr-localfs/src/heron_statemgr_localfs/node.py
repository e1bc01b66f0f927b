"""One node: a value file, changed only under the node's write lock and only by rename.

    ROOT/<kind>/<topology>          the record (see `record`); present while the node exists
    ROOT/<kind>/.<topology>.lock    flock: the write lock. Content: the last version, which outlives the node, so that
                                    versions and epochs always grow
    ROOT/<kind>/.<topology>.held    flock: locked while the holder of the node lives
    ROOT/<kind>/.<topology>.tmp     a record during a write; the next writer overwrites the file of a killed writer

This module keeps every invariant of a node. Readers of ordinary nodes need no lock, because a rename is atomic. To find
out whether a holder lives, a process tries the holder's lock; it does that under the write lock. Data is not forced to
disk: a power failure ends every process that used the state, and readers detect a file that it cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron_statemgr_localfs.file_lock import exclusive, try_exclusive
from heron_statemgr_localfs.os_errors import root_gone, translate_os_errors
from heron_statemgr_localfs.record import HEADER_LIMIT_BYTES, Header, Record, decode, decode_header, encode

__all__ = ["Node"]

_COUNTER_DIGITS = 20


class Node:
    """The files of one node. Each operation uses a new object, which keeps no file open."""

    __slots__ = ("_label", "_root", "_topology", "path")

    def __init__(self, root: Path, kind: str, topology: str) -> None:
        self._root = root
        self._label = f"{kind}/{topology}"
        self._topology = topology
        self.path = root / kind / topology

    # Most operations read an ordinary node. The other paths are made on demand: a path costs as much as reading one.

    @property
    def _lock(self) -> Path:
        return self.path.with_name(f".{self._topology}.lock")

    @property
    def _held(self) -> Path:
        return self.path.with_name(f".{self._topology}.held")

    @property
    def _tmp(self) -> Path:
        return self.path.with_name(f".{self._topology}.tmp")

    def read(self) -> Record | None:
        """Return the present record. Removes a node whose holder is dead, and returns None for it."""
        with translate_os_errors("read", self.path):
            record = self._record()
            if record is None or not record.holder:
                return record
            with self._locked() as counter:
                record = self._record()
                if record is not None and record.holder and self._reap(counter, record.version):
                    return None
                return record

    def exists(self) -> bool:
        """Whether the node exists; reads the header only. A garbled node exists."""
        with translate_os_errors("read", self.path):
            header = self._header_or_garbled(None)
            if header is None or not header.holder:
                return header is not None
            with self._locked() as counter:
                return self._present(counter) is not None

    def write(self, value: bytes, expected: int | None) -> int:
        """Replace the record if `expected` agrees, and return its new version. A held node stays held."""
        with translate_os_errors("write", self.path), self._locked() as counter:
            header = self._present(counter)
            self._check(header, expected)
            version = self._next_version(counter, header)
            self._replace(counter, Record(version, value, header.holder if header else ""))
            return version

    def remove(self, expected: int | None) -> None:
        """Remove the node if `expected` agrees."""
        with translate_os_errors("remove", self.path):
            if self._header_or_garbled(None) is None:
                self._check(None, expected)
                return
            with self._locked() as counter:
                header = self._present(counter)
                self._check(header, expected)
                if header is not None:
                    self._unlink(counter, header.version)
                    if header.holder:  # the hold is lost, and another process can hold the node at once
                        self._held.unlink(missing_ok=True)

    def acquire(self, value: bytes, token: str) -> tuple[int, int]:
        """Hold the node. Returns its version, and the descriptor that keeps the hold while it is open.

        Raises:
            StateConflictError: when a live process holds the node; this process counts too.
        """
        with translate_os_errors("hold", self.path), self._locked() as counter:
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
        """Whether the node exists and belongs to the hold with this token. Raises StateError for a garbled node."""
        with translate_os_errors("read", self.path):
            record = self._record()
        return record is not None and record.holder == token

    def restore(self, version: int, value: bytes, token: str) -> None:
        """Rewrite the record of a hold if it is garbled. The version stays, because the value is the same."""
        with translate_os_errors("write", self.path), self._locked() as counter:
            try:
                self._record()
            except StateUnavailableError:
                raise
            except StateError:
                self._replace(counter, Record(version, value, token))

    def release(self, token: str, descriptor: int) -> None:
        """End the hold, and remove the node if it still belongs to this hold."""
        try:
            with translate_os_errors("release", self.path), self._locked() as counter:
                header = self._header()
                if header is not None and header.holder == token:
                    self._unlink(counter, header.version)
                if self._held.exists() and os.path.samestat(self._held.stat(), os.fstat(descriptor)):
                    self._held.unlink()
        finally:
            os.close(descriptor)

    def make_folder(self) -> None:
        """Create the folder of the node's kind if it does not exist."""
        with translate_os_errors("make", self.path.parent):
            self._make_folder()

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError as error:
            raise root_gone(self._root) from error

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
            with open(self.path, "rb", buffering=0) as file:
                return file.read() if limit is None else file.read(limit)
        except FileNotFoundError:
            if not self._root.is_dir():
                raise root_gone(self._root) from None
            return None

    def _header_or_garbled(self, counter: int | None) -> Header | None:
        """The header. For a garbled file it has the version of the counter, so that a write repairs the node."""
        try:
            return self._header()
        except StateUnavailableError:
            raise
        except StateError:
            return Header(max(_read_counter(counter) if counter is not None else 0, 1), "", 0, 0, 0)

    def _present(self, counter: int) -> Header | None:
        """The header; None also if the holder was dead, after removal of the node. Needs the write lock."""
        header = self._header_or_garbled(counter)
        return None if header is not None and header.holder and self._reap(counter, header.version) else header

    def _reap(self, counter: int, version: int) -> bool:
        """Remove the node if its holder is dead, and return whether it was. Needs the write lock."""
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
        # The counter is first. If the process is killed in between, a version is skipped, but never used twice.
        _write_counter(counter, max(_read_counter(counter), record.version))
        try:
            descriptor = os.open(self._tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), encode(record))
            self._tmp.replace(self.path)
        except OSError:
            self._tmp.unlink(missing_ok=True)
            raise


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_counter(descriptor: int) -> int:
    digits = os.pread(descriptor, _COUNTER_DIGITS, 0)
    return int(digits) if digits.isdigit() else 0


def _write_counter(descriptor: int, version: int) -> None:
    os.pwrite(descriptor, b"%0*d" % (_COUNTER_DIGITS, version), 0)

"""The state manager ``shared``: nodes as files of one folder, behind one lock.

FOLDER/lock           flock: one change at a time
FOLDER/KIND/TOPOLOGY  a line ``VERSION TOKEN``, then the value; TOKEN is ``-``, ``removed`` or that of a hold
FOLDER/held-TOKEN     flock: locked while the process that holds a node lives
"""

from __future__ import annotations

import builtins
import fcntl
import logging
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.os_errors import translated_os_errors
from heron.driver_kit.private_files import check_usable, make_private_dir, write_private
from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.options import decode_options
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_BLOCK_S = 10.0
_FREE, _REMOVED = "-", "removed"
_ANOTHER = "choose another statemgr.folder"
_log = logging.getLogger(__name__)


class SharedOptions(msgspec.Struct, frozen=True):
    folder: Annotated[str, msgspec.Meta(min_length=1)]
    poll_s: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.2


class SharedStateManager(StateManager):
    """A removed node keeps its file, so that versions grow for ever."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files"})
    options_type: ClassVar[type] = SharedOptions

    def __init__(self, folder: Path, poll_s: float) -> None:
        self._folder = folder
        self._poll_s = poll_s
        self._existed = False
        self._opened: builtins.list[_Hold | _Watch] = []

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        chosen = decode_options(options, SharedOptions, "statemgr")
        return cls(Path(chosen.folder).expanduser().absolute(), chosen.poll_s)

    def check(self, timeout_s: float) -> str:
        with translated_os_errors(StateUnavailableError, f"folder {self._folder}: cannot be used", _ANOTHER):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        path = self._path(kind, topology)
        with self._locked(f"{path} cannot be read"):
            version, token, value = self._read(path)
        return None if token == _REMOVED else Versioned(value, version)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        path = self._path(kind, topology)
        with self._locked(f"{path} cannot be written"):
            version, token, _ = self._read(path)
            _expect(path, expected, 0 if token == _REMOVED else version)
            return _write(path, version + 1, _FREE if token == _REMOVED else token, value)

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        path = self._path(kind, topology)
        with self._locked(f"{path} cannot be removed"):
            version, token, _ = self._read(path)
            _expect(path, expected, 0 if token == _REMOVED else version)
            if token != _REMOVED:
                _write(path, version, _REMOVED)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        folder = self._folder / kind.value
        with self._locked(f"{folder} cannot be listed"):
            names = sorted(each.name for each in folder.iterdir()) if folder.exists() else []
            return tuple(name for name in names if _NAME.fullmatch(name) and self._read(folder / name)[1] != _REMOVED)

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        watch = _Watch(lambda: self.get(kind, topology), on_change, self._poll_s)
        self._opened.append(watch)
        return watch

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        path, token = self._path(kind, topology), secrets.token_hex(8)
        held = self._folder / f"held-{token}"
        with self._locked(f"{path} cannot be held"):
            version, present, _ = self._read(path)
            if present not in (_FREE, _REMOVED):
                raise StateConflictError(f"{path} is held by another live process; wait until it ends")
            descriptor = os.open(held, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _write(path, version + 1, token, value)
            except OSError:
                held.unlink(missing_ok=True)
                os.close(descriptor)
                raise
        hold = _Hold(self, path, token, version + 1, descriptor)
        self._opened.append(hold)
        return hold

    def close(self) -> None:
        while self._opened:
            each = self._opened.pop()
            each.close() if isinstance(each, _Watch) else each.release()

    def is_held(self, path: Path, token: str) -> bool:
        """Whether the node belongs to that hold."""
        with self._locked(f"{path} cannot be read"):
            return self._read(path)[1] == token

    def remove_held(self, path: Path, token: str) -> None:
        """Remove the node if it belongs to that hold."""
        with self._locked(f"{path} cannot be released"):
            version, present, _ = self._read(path)
            if present == token:
                _write(path, version, _REMOVED)
            (self._folder / f"held-{token}").unlink(missing_ok=True)

    def _path(self, kind: NodeKind, topology: str) -> Path:
        if not _NAME.fullmatch(topology):
            raise StateError(f"topology {topology!r:.80}: the name is refused; use letters, digits, '_' and '-'")
        return self._folder / kind.value / topology

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        with translated_os_errors(StateUnavailableError, what, _ANOTHER):
            if self._existed and not self._folder.is_dir():
                raise StateUnavailableError(f"{what}: the folder {self._folder} is gone; bring it back")
            make_private_dir(self._folder)
            self._existed = True
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _lock(descriptor, what)
                yield
            finally:
                os.close(descriptor)

    def _read(self, path: Path) -> tuple[int, str, bytes]:
        """Return version, token and value; the node of a dead holder is removed."""
        if not path.exists():
            return 0, _REMOVED, b""
        head, newline, value = path.read_bytes().partition(b"\n")
        number, _, token = head.decode(errors="replace").partition(" ")
        if not newline or not number.isdigit() or not token:
            raise StateError(f"{path} is garbled; remove the file, and submit the topology again")
        if token not in (_FREE, _REMOVED) and not self._lives(token):
            _write(path, int(number), _REMOVED)
            return int(number), _REMOVED, b""
        return int(number), token, value

    def _lives(self, token: str) -> bool:
        held = self._folder / f"held-{token}"
        try:
            descriptor = os.open(held, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        held.unlink(missing_ok=True)
        return False


class _Hold:
    def __init__(self, manager: SharedStateManager, path: Path, token: str, epoch: int, descriptor: int) -> None:
        self._manager, self._path, self._token = manager, path, token
        self._epoch, self._descriptor = epoch, descriptor
        self._lost = False

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        with suppress(StateError):
            self._lost = self._lost or not self._manager.is_held(self._path, self._token)
        return self._lost

    def release(self) -> None:
        if self._descriptor < 0:
            return
        self._lost = True
        with suppress(StateError):  # the next reader removes the node
            self._manager.remove_held(self._path, self._token)
        os.close(self._descriptor)
        self._descriptor = -1


class _Watch:
    def __init__(
        self, read: Callable[[], Versioned | None], on_change: Callable[[Versioned | None], None], poll_s: float
    ) -> None:
        self._read, self._on_change, self._poll_s = read, on_change, poll_s
        self._closed = threading.Event()
        self._seen = read()
        self._report()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _follow(self) -> None:
        while not self._closed.wait(self._poll_s):
            with suppress(StateError):
                present = self._read()
                if present != self._seen:
                    self._seen = present
                    self._report()

    def _report(self) -> None:
        try:
            self._on_change(self._seen)
        except Exception:
            _log.exception("the function of a watch raised")


def _expect(path: Path, expected: int | None, present: int) -> None:
    if expected is not None and expected != present:
        raise StateConflictError(f"{path} has version {present}, not {expected}; read it again")


def _write(path: Path, version: int, token: str, value: bytes = b"") -> int:
    make_private_dir(path.parent)
    write_private(path, b"%d %s\n" % (version, token.encode()) + value)
    return version


def _lock(descriptor: int, what: str) -> None:
    end_s, pause = monotonic_s() + _BLOCK_S, threading.Event()
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic_s() > end_s:
                raise StateUnavailableError(f"{what}: another process has the lock; find it with fuser") from None
            pause.wait(0.002)

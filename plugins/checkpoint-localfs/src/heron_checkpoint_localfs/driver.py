"""Stores checkpoints as files in folders that only their owner can enter.

- An object is written to a partial file and forced to disk. A rename then gives it its name, and the folders are forced
  to disk. So after any death, also of the machine, an object is complete or absent.
- `store` and `dispose` remove the partial files of killed processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import wall_s
from heron.driver_kit.private_files import check_private, check_usable, make_private_dir
from heron.errors import CheckpointError, ConfigError
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron.spi.options import decode_options
from heron_checkpoint_localfs.partial_file import is_partial, partial_file, remove_abandoned
from heron_driver_kit.checkpoint_names import check_name, check_prefix, check_range, is_name
from heron_driver_kit.os_errors import translated_os_errors

__all__ = ["LocalfsCheckpointStore", "LocalfsOptions"]

_ATTEMPTS = 100  # each lost one means that another process removed the empty folder just then
_ANOTHER_ROOT = "choose another checkpoint.root"
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})


class LocalfsOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile. `root` is the folder of the objects; ``~`` is the user's home."""

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/checkpoints"


class LocalfsCheckpointStore(CheckpointStore):
    """Objects below the folder `root`, for the processes of one user on one machine."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files"})
    options_type: ClassVar[type] = LocalfsOptions

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the option `root`. The folder is not created yet."""
        chosen = decode_options(options, LocalfsOptions, "checkpoint")
        return cls(Path(os.path.abspath(Path(chosen.root).expanduser())))

    def check(self, timeout_s: float) -> str:
        """Check that the folder is writable or can be created."""
        with translated_os_errors(CheckpointError, f"folder {self._root}: cannot be used", _ANOTHER_ROOT):
            check_usable(self._root)
            check_private(self._root, "checkpoint folder")
        return f"folder {self._root}"

    def store(self, name: str, data: bytes) -> None:
        """Write the file beside its place, force it to disk, and rename it."""
        check_name(name)
        path = self._root / name
        what = f"checkpoint object {path}: its {len(data)} bytes cannot be stored"
        with translated_os_errors(CheckpointError, what, _ANOTHER_ROOT):
            for attempt in range(_ATTEMPTS):
                try:
                    self._make_folder(path.parent)
                    self._write(path, data)
                    return
                except FileNotFoundError:
                    if attempt + 1 == _ATTEMPTS:
                        raise

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """Read the range from the file."""
        check_name(name)
        check_range(name, start, size_bytes)
        path = self._root / name
        what = f"checkpoint object {path}: cannot be loaded"
        with translated_os_errors(CheckpointError, what, "see checkpoint.root, or use another checkpoint"):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                has_bytes = os.fstat(descriptor).st_size
                check_range(name, start, size_bytes, has_bytes)
                return _read(descriptor, start, has_bytes - start if size_bytes is None else size_bytes)
            finally:
                os.close(descriptor)

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """List the files below the folder."""
        check_prefix(prefix)
        folder = self._root / prefix
        with translated_os_errors(CheckpointError, f"folder {folder}: cannot be listed", _ANOTHER_ROOT):
            if self._root.exists():
                os.listdir(self._root)  # another root than a folder must not look like a store without objects
            found = [each for path in _files(folder) if (each := self._object(path))]
        return tuple(sorted(found, key=lambda each: each.name))

    def dispose(self, names: Iterable[str]) -> None:
        """Remove the files, then partial files of killed processes and empty folders beside them."""
        above = set()
        for name in names:
            check_name(name)
            path = self._root / name
            with (
                translated_os_errors(CheckpointError, f"checkpoint object {path}: cannot be removed", "remove it"),
                contextlib.suppress(FileNotFoundError),
            ):
                path.unlink()
            parent = path.parent
            above.add(parent if parent.parent == self._root else parent.parent)
        for folder in sorted(above):
            with translated_os_errors(CheckpointError, f"folder {folder}: cannot be cleaned up", "remove it"):
                self._clean_up(folder)

    def _make_folder(self, folder: Path) -> None:
        new_root = not self._root.exists()
        make_private_dir(folder)
        try:
            check_private(self._root, "checkpoint folder")  # what is loaded from it is unpickled
        except ConfigError as error:
            raise CheckpointError(str(error)) from error
        if new_root:
            _force_to_disk(self._root.parent)

    def _write(self, path: Path, data: bytes) -> None:
        for each in _entries(path.parent):
            if is_partial(each.name):
                remove_abandoned(Path(each.path))
        with partial_file(path) as (descriptor, partial):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
            partial.replace(path)
            folder = path.parent
            while folder != self._root.parent:
                _force_to_disk(folder)
                folder = folder.parent

    def _object(self, path: Path) -> StoredObject | None:
        """Return the object in a file; None when no store can have written the file, or when it was just removed."""
        name = path.relative_to(self._root).as_posix()
        if not is_name(name):
            return None
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        return StoredObject(name, status.st_size, max(0.0, wall_s() - status.st_mtime))

    def _clean_up(self, folder: Path) -> None:
        for path in _files(folder):
            if is_partial(path.name):
                remove_abandoned(path)
        for each in (*_folders(folder), folder, *folder.parents):
            if each == self._root:
                break
            _remove_if_empty(each)


def _read(descriptor: int, start: int, size_bytes: int) -> bytes:
    pieces, have = [], 0
    while have < size_bytes:
        piece = os.pread(descriptor, size_bytes - have, start + have)
        if not piece:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        pieces.append(piece)
        have += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder; none when it does not exist, or is a file."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        yield from entries


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder."""
    for each in _entries(folder):
        if each.is_dir(follow_symlinks=False):
            yield from _files(Path(each.path))
        elif each.is_file(follow_symlinks=False):
            yield Path(each.path)


def _folders(folder: Path) -> Iterator[Path]:
    """Yield all folders below a folder, the lowest first."""
    for each in list(_entries(folder)):
        if each.is_dir(follow_symlinks=False):
            yield from _folders(Path(each.path))
            yield Path(each.path)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise


def _force_to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

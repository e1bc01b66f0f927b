"""The uploader ``shelf``: packages as files of a folder that all containers can read."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.clock import wall_s
from heron.driver_kit.packages import PackageName, chunks_of, receive, sha256_of, translated_errors
from heron.driver_kit.private_files import check_usable, make_private_dir
from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader

_SCHEME = "shelf:"
_ANOTHER = "choose another uploader.folder"


class ShelfOptions(msgspec.Struct, frozen=True):
    folder: Annotated[str, msgspec.Meta(min_length=1)]


class ShelfUploader(Uploader):
    """Names each file by its content."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files", "listing"})
    options_type: ClassVar[type] = ShelfOptions

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(Path(decode_options(options, ShelfOptions, "uploader").folder).expanduser().absolute())

    def check(self, timeout_s: float) -> str:
        with translated_errors(f"folder {self._folder}: cannot be used", _ANOTHER):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def upload(self, package: Path, name: str) -> str:
        digest = sha256_of(chunks_of(package))
        stored = self._folder / PackageName(name, digest).file
        with translated_errors(f"package {package}: cannot be stored in {self._folder}", _ANOTHER):
            make_private_dir(self._folder)
            with self._alone():
                self._remove_remains(stored)
                if not stored.exists() or sha256_of(chunks_of(stored)) != digest:
                    self._copy(package, stored, digest)
        return f"{_SCHEME}{stored.name}"

    def undo(self, uri: str) -> None:
        stored, _ = self._stored(uri)
        with translated_errors(f"package {stored}: cannot be removed", "remove it by hand"):
            make_private_dir(self._folder)
            with self._alone():
                self._remove_remains(stored)
                stored.unlink(missing_ok=True)

    def download(self, uri: str, target: Path) -> None:
        stored, digest = self._stored(uri)
        self._copy(stored, target, digest)

    def packages(self) -> tuple[PackageEntry, ...]:
        with translated_errors(f"folder {self._folder}: cannot be listed", _ANOTHER):
            files = sorted(self._folder.iterdir()) if self._folder.exists() else []
            named = [(path.stat(), name) for path in files if (name := PackageName.of_file(path.name))]
        return tuple(
            PackageEntry(f"{_SCHEME}{name.file}", name.name, found.st_size, max(0.0, wall_s() - found.st_mtime))
            for found, name in named
        )

    def _stored(self, uri: str) -> tuple[Path, str]:
        name = PackageName.of_file(uri.removeprefix(_SCHEME)) if uri.startswith(_SCHEME) else None
        if name is None:
            raise PackageError(f"package {uri!r:.200} is not one of this uploader; submit the topology again")
        return self._folder / name.file, name.digest

    def _copy(self, source: Path, target: Path, digest: str) -> None:
        what = f"package {source}"
        with translated_errors(f"{what}: cannot be read", "submit the topology again"):
            size = source.stat().st_size
        receive(lambda _start: chunks_of(source), target, digest, what, self._moved, size)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time changes the folder; the lock of a killed one is free."""
        descriptor = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _remove_remains(self, stored: Path) -> None:
        for each in self._folder.glob(f".{stored.name}.part-*"):
            each.unlink(missing_ok=True)

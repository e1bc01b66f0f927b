"""Topology packages: a manifest and the author's files, in one ``.tar.gz``. Equal input gives equal bytes.

A package is a sequence of gzip members, which readers see as one stream. A file of 64 KiB or more has its own member,
and smaller files share one in groups of about 16. Names alone decide where a group ends. So the bytes of a member stay
equal when files of other members change, and a store can keep equal members once.

The manifest is the first entry. Every other entry must be a regular file that the manifest lists, with the listed
SHA-256. `unpack` writes either exactly these files or nothing. A package is refused while it is read: before a file
leaves its folder, and before the content takes more than 100 times the bytes of the package and 64 MiB.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import sys
import tarfile
import unicodedata
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

from heron.errors import PackageError
from heron.kernel.manifest import MANIFEST_NAME, PackageManifest, decode_manifest, encode_manifest

__all__ = ["hash_files", "pack", "unpack"]

_CHUNK_BYTES = 1 << 20
_BROKEN = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    gzip.BadGzipFile,
    struct.error,
    ValueError,  # tarfile raises these for numbers and texts in its headers
    OverflowError,
    RecursionError,
)
_LEAST_BYTES = 64 << 20
_RATIO = 100  # text compresses 5 times, and a table of one value 1,000 times, but not a whole program
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)
_ALONE_BYTES = 64 << 10  # a new member costs 18 bytes and what the text before it would have saved
_GROUP = 16  # a member each would cost a store one request per small file


def hash_files(root: Path, files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each file in hexadecimal, by its path relative to `root`.

    Raises:
        PackageError: when a file cannot be read.
    """
    hashes: dict[str, str] = {}
    for name in sorted(files):
        try:
            with (root / name).open("rb") as file:
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            msg = f"{root / name}: cannot be packed: {error.strerror}; make it readable"
            raise PackageError(msg) from error
    return hashes


def pack(root: Path, files: Sequence[str], manifest: PackageManifest, target: Path) -> PackageManifest:
    """Write the package of `files` (relative to `root`) to `target`. Return its manifest with their hashes.

    Raises:
        PackageError: when a file cannot be read or changes meanwhile, two names differ only in their case, the files
            are more than 100 times larger than the package, or `target` cannot be written.
    """
    _check_names(files, target)
    manifest = replace(manifest, files=hash_files(root, files))
    try:
        with (
            target.open("xb") as raw,
            closing(_Members(raw)) as members,
            tarfile.open(fileobj=cast("IO[bytes]", members), mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            _add(archive, MANIFEST_NAME, encode_manifest(manifest))
            members.cut()
            for name, expected in manifest.files.items():
                data = (root / name).read_bytes()
                if hashlib.sha256(data).hexdigest() != expected:
                    msg = f"{root / name}: changed while it was packed; submit again"
                    raise PackageError(msg)
                alone = len(data) >= _ALONE_BYTES
                if alone:
                    members.cut()
                _add(archive, name, data)
                if alone or hashlib.sha256(name.encode()).digest()[0] % _GROUP == 0:
                    members.cut()
            members.cut()  # the end of an archive depends on its length
        _check_ratio(target, sum((root / name).stat().st_size for name in manifest.files))
    except OSError as error:
        target.unlink(missing_ok=True)
        msg = f"package {target}: cannot be written: {error.strerror}; free or allow the space"
        raise PackageError(msg) from error
    except PackageError:
        target.unlink(missing_ok=True)
        raise
    return manifest


def unpack(package: Path, target: Path) -> PackageManifest:
    """Unpack a package into the folder `target` (created with mode 0700 if absent). Return its manifest.

    The package is read twice: nothing is written before all of it was compared with its manifest.

    Raises:
        PackageError: when the package is garbled, has an entry that the manifest does not list, differs from a
            SHA-256 (the message has both), takes too many bytes, or was made for another Python. None of its files is
            left in `target`.
    """
    written: list[Path] = []
    try:
        _read(package, lambda name, content: _digest(_inside(target, name, package), content))
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _read(package, lambda name, content: _write(_inside(target, name, package), content, written))
    except _BROKEN as error:
        _remove(written)
        msg = f"package {package}: garbled ({error}); submit the topology again"
        raise PackageError(msg) from error
    except OSError as error:
        _remove(written)
        msg = f"package {package}: cannot be unpacked into {target}: {error.strerror}"
        raise PackageError(msg) from error
    except PackageError:
        _remove(written)
        raise


_Take = Callable[[str, IO[bytes]], str]
"""Takes the name and the content of a file, and returns the SHA-256 of the content."""


def _read(package: Path, take: _Take) -> PackageManifest:
    with gzip.open(package) as zipped:
        content = _Bounded(zipped, package)
        with tarfile.open(fileobj=cast("IO[bytes]", content), mode="r|") as archive:
            manifest = _read_entries(archive, package, take)
        while content.read(_CHUNK_BYTES):  # up to the checksum at the end, which tells a package that was cut
            pass
        return manifest


def _read_entries(archive: tarfile.TarFile, package: Path, take: _Take) -> PackageManifest:
    manifest: PackageManifest | None = None
    missing: dict[str, str] = {}
    for member in archive:
        is_file = member.type in _REGULAR and member.sparse is None  # a sparse one is larger than its bytes say
        content = archive.extractfile(member) if is_file else None
        if content is None:
            msg = f"package {package}: entry {member.name!r} is not a regular file; submit again"
            raise PackageError(msg)
        if manifest is None:
            if member.name != MANIFEST_NAME:
                msg = f"package {package}: begins with {member.name!r}, not {MANIFEST_NAME!r}"
                raise PackageError(msg)
            data = content.read()
            manifest = decode_manifest(data, f"package {package}")
            _check_manifest(manifest, package)
            missing = dict(manifest.files)
            take(MANIFEST_NAME, io.BytesIO(data))
            continue
        expected = missing.pop(member.name, None)
        if expected is None:
            msg = f"package {package}: entry {member.name!r} is not in its manifest; submit again"
            raise PackageError(msg)
        if (found := take(member.name, content)) != expected:
            msg = (
                f"package {package}: the SHA-256 of {member.name!r} is {found}, not {expected}; the package was "
                "changed, submit again"
            )
            raise PackageError(msg)
    if manifest is None or missing:
        lacking = ", ".join(sorted(missing)) or MANIFEST_NAME
        msg = f"package {package}: lacks {lacking}; submit the topology again"
        raise PackageError(msg)
    return manifest


def _check_manifest(manifest: PackageManifest, package: Path) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if manifest.python != here:
        msg = (
            f"package {package}: made with Python {manifest.python}, this container has {here}; "
            f"submit with Python {here} or give the container {manifest.python}"
        )
        raise PackageError(msg)
    if MANIFEST_NAME in manifest.files:
        msg = f"package {package}: its manifest lists itself; do not trust this package"
        raise PackageError(msg)
    _check_names(manifest.files, package)
    if manifest.runtime != "python":
        msg = f"package {package}: runtime {manifest.runtime!r} is unknown; known: 'python'"
        raise PackageError(msg)


def _check_names(names: Collection[str], package: Path) -> None:
    """Refuses names that some file system takes for one name: the second file would replace the first."""
    seen: dict[str, str] = {}
    for name in names:
        folded = unicodedata.normalize("NFC", name).casefold()
        if folded in seen or str(PurePosixPath(name)) != name:
            what = f"is {seen[folded]!r} where case does not count" if folded in seen else "is no plain path"
            msg = f"package {package}: entry {name!r} {what}; rename the file and submit again"
            raise PackageError(msg)
        seen[folded] = name


def _check_ratio(package: Path, content_bytes: int) -> None:
    most_bytes = _most_bytes(package)
    if content_bytes > most_bytes:
        msg = (
            f"package {package}: its files take {content_bytes} bytes, more than the limit of {most_bytes} bytes, "
            f"which is {_RATIO} times its size and {_LEAST_BYTES} bytes; leave files of equal bytes out"
        )
        raise PackageError(msg)


def _most_bytes(package: Path) -> int:
    return _RATIO * package.stat().st_size + _LEAST_BYTES


class _Members:
    """Writes gzip members one after the other."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._member: gzip.GzipFile | None = None
        self._bytes = 0

    def write(self, data: bytes) -> int:
        if self._member is None:
            self._member = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0, compresslevel=6)
        self._bytes += len(data)
        return self._member.write(data)

    def tell(self) -> int:
        return self._bytes

    def cut(self) -> None:
        """End the present member, if it has content."""
        if self._member is not None:
            self._member.close()
            self._member = None

    close = cut


class _Bounded:
    """The content of a package, up to the most bytes that it may take."""

    def __init__(self, zipped: gzip.GzipFile, package: Path) -> None:
        self._zipped = zipped
        self._package = package
        self._most_bytes = _most_bytes(package)
        self._bytes = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes.

        Raises:
            PackageError: when they are too many.
        """
        left = self._most_bytes + 1 - self._bytes
        data = self._zipped.read(left if size < 0 else min(size, left))
        self._bytes += len(data)
        if self._bytes > self._most_bytes:
            msg = (
                f"package {self._package}: unpacks to more than the limit of {self._most_bytes} bytes, which is "
                f"{_RATIO} times its size and {_LEAST_BYTES} bytes; do not trust this package"
            )
            raise PackageError(msg)
        return data


def _inside(target: Path, name: str, package: Path) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        msg = f"package {package}: entry {name!r} would leave its folder; do not trust this package"
        raise PackageError(msg)
    return target.joinpath(*path.parts)


def _digest(_path: Path, content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := content.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _write(path: Path, content: IO[bytes], written: list[Path]) -> str:
    """Write a new file with mode 0600 in place of an existing one. Return its SHA-256."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # an earlier attempt left it; a link would be followed otherwise
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    written.append(path)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)  # mtime 0, owner 0 and no names: the same bytes on every machine
    member.size = len(data)
    member.mode = 0o600
    archive.addfile(member, io.BytesIO(data))


def _remove(written: list[Path]) -> None:
    for path in written:
        path.unlink(missing_ok=True)

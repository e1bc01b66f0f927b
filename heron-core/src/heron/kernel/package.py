"""A topology's package: the author's files behind a manifest, as one ``.tar.gz`` that is the same for the same input.

What `unpack` leaves is byte for byte what the manifest names and nothing else, or nothing at all: the manifest comes
first, every other entry must be a regular file that it lists, and must have the SHA-256 that it gives.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from heron.errors import PackageError
from heron.kernel.manifest import MANIFEST_NAME, PackageManifest, decode_manifest, encode_manifest

__all__ = ["hash_files", "pack", "unpack"]

_CHUNK_BYTES = 1 << 20
_BROKEN = (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile)


def hash_files(root: Path, files: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each file, by its path relative to `root`.

    Raises:
        PackageError: when one cannot be read.
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
    """Writes the package of `files` (relative to `root`) to `target` and returns its manifest, with their hashes.

    Raises:
        PackageError: when a file cannot be read, changes meanwhile, or `target` cannot be written.
    """
    manifest = replace(manifest, files=hash_files(root, files))
    try:
        with (
            target.open("xb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            _add(archive, MANIFEST_NAME, encode_manifest(manifest))
            for name, expected in manifest.files.items():
                data = (root / name).read_bytes()
                if hashlib.sha256(data).hexdigest() != expected:
                    msg = f"{root / name}: changed while it was packed; submit again"
                    raise PackageError(msg)
                _add(archive, name, data)
    except OSError as error:
        target.unlink(missing_ok=True)
        msg = f"package {target}: cannot be written: {error.strerror}; free or allow the space"
        raise PackageError(msg) from error
    except PackageError:
        target.unlink(missing_ok=True)
        raise
    return manifest


def unpack(package: Path, target: Path) -> PackageManifest:
    """Unpacks a package into the folder `target` (made if absent, 0700) and returns its manifest.

    Raises:
        PackageError: when the package is garbled, holds anything that its manifest does not list, differs from a
            SHA-256, or was made for another Python; nothing of it is left in `target`.
    """
    written: list[Path] = []
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tarfile.open(package, mode="r|gz") as archive:
            return _unpack(archive, package, target, written)
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


def _unpack(archive: tarfile.TarFile, package: Path, target: Path, written: list[Path]) -> PackageManifest:
    manifest: PackageManifest | None = None
    missing: dict[str, str] = {}
    for member in archive:
        content = archive.extractfile(member) if member.isreg() else None
        if content is None:
            msg = f"package {package}: entry {member.name!r} is no regular file; submit again"
            raise PackageError(msg)
        if manifest is None:
            if member.name != MANIFEST_NAME:
                msg = f"package {package}: begins with {member.name!r}, not {MANIFEST_NAME!r}"
                raise PackageError(msg)
            data = content.read()
            manifest = decode_manifest(data, f"package {package}")
            _check_manifest(manifest, package)
            missing = dict(manifest.files)
            _write(target / MANIFEST_NAME, io.BytesIO(data), written)
            continue
        expected = missing.pop(member.name, None)
        if expected is None:
            msg = f"package {package}: entry {member.name!r} is not in its manifest; submit again"
            raise PackageError(msg)
        path = _inside(target, member.name, package)
        if _write(path, content, written) != expected:
            msg = f"package {package}: {member.name!r} differs from its SHA-256; submit again"
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
    if manifest.runtime != "python":
        msg = f"package {package}: runtime {manifest.runtime!r} is unknown; known: 'python'"
        raise PackageError(msg)


def _inside(target: Path, name: str, package: Path) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        msg = f"package {package}: entry {name!r} would leave its folder; do not trust this package"
        raise PackageError(msg)
    return target.joinpath(*path.parts)


def _write(path: Path, content: IO[bytes], written: list[Path]) -> str:
    """Writes a new file, 0600, whatever stood in its place, and returns the SHA-256 of what it wrote."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # of an attempt before; a link there would be followed otherwise
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

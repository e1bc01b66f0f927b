"""The manifest of a topology package: how to load the author's file, and the SHA-256 of every file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from heron.errors import PackageError
from heron.spi.typed_values import decode_json

__all__ = ["FORMAT", "MANIFEST_NAME", "PackageManifest", "decode_manifest", "encode_manifest", "read_manifest"]

FORMAT = 1
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class PackageManifest:
    """How every process loads the author's file, and the contents of the package.

    Attributes:
        topology: the name of the topology.
        module: the module name of the author's file.
        files: the SHA-256 of each file in hexadecimal, by its path relative to the package.
        script: whether the block ``if __name__ == "__main__"`` of the file submitted the topology.
        choice: NAME of ``FILE:NAME``, or None.
        argv: the program arguments of the file.
        origin: the folder of the files on the author's machine, for messages.
        import_paths: the folders for `sys.path`, relative to the package. The first one holds the author's file.
        python: the version of Python, as ``major.minor``.
        requirements: reserved.
        runtime: the language of the components.
        compat: the classes ``module:Class`` of the compat plugins that serve packages to the file.
        format: the version of this format.
    """

    topology: str
    module: str
    files: dict[str, str]
    script: bool = False
    choice: str | None = None
    argv: tuple[str, ...] = ()
    origin: str = ""
    import_paths: tuple[str, ...] = (".",)
    python: str = f"{sys.version_info.major}.{sys.version_info.minor}"
    requirements: tuple[str, ...] = field(default=())
    runtime: str = "python"
    compat: tuple[str, ...] = ()
    format: int = FORMAT


def encode_manifest(manifest: PackageManifest) -> bytes:
    """Return the manifest as JSON. Equal manifests give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1)


def decode_manifest(data: bytes, place: str) -> PackageManifest:
    """Return the manifest that `encode_manifest` encoded; `place` names the file in errors.

    Raises:
        PackageError: when the bytes are not a manifest, or have an unknown format.
    """
    try:
        found = decode_json(data, _Format).format
        if found != FORMAT:
            msg = (
                f"{place}: format {found} of the manifest is unknown, this version reads {FORMAT}; "
                "submit the topology again with this version"
            )
            raise PackageError(msg)
        return decode_json(data, PackageManifest)
    except msgspec.MsgspecError as error:
        msg = f"{place}: not a manifest: {error}; submit the topology again"
        raise PackageError(msg) from error


def read_manifest(folder: Path) -> PackageManifest:
    """Return the manifest of an unpacked package.

    Raises:
        PackageError: when the file is missing, cannot be read, or is not a manifest.
    """
    path = folder / MANIFEST_NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}; unpack the package again"
        raise PackageError(msg) from error
    return decode_manifest(data, str(path))


@dataclass(frozen=True, slots=True)
class _Format:
    format: int

"""What a topology package says of itself: how to load the author's file, and the SHA-256 of every file in it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from heron.errors import PackageError

__all__ = ["FORMAT", "MANIFEST_NAME", "PackageManifest", "decode_manifest", "encode_manifest", "read_manifest"]

FORMAT = 1
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class PackageManifest:
    """How the author's file is loaded, in every process in the same way, and what the package holds.

    `script` says that its ``if __name__ == "__main__"`` block made the topology; `choice` is NAME of ``FILE:NAME``;
    `origin` is the folder the files came from, for messages; `files` maps relative paths to SHA-256 in hex.
    """

    topology: str
    module: str
    files: dict[str, str]
    script: bool = False
    choice: str | None = None
    argv: tuple[str, ...] = ()
    origin: str = ""
    python: str = f"{sys.version_info.major}.{sys.version_info.minor}"
    requirements: tuple[str, ...] = field(default=())
    runtime: str = "python"
    format: int = FORMAT


def encode_manifest(manifest: PackageManifest) -> bytes:
    """The manifest as JSON with its keys in order, the same bytes for equal manifests."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1)


def decode_manifest(data: bytes, place: str) -> PackageManifest:
    """The inverse of `encode_manifest`; `place` names the file in errors.

    Raises:
        PackageError: when the bytes are not a manifest, or of a format that this version does not know.
    """
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found != FORMAT:
            msg = (
                f"{place}: format {found} of the manifest is unknown, this version reads {FORMAT}; "
                "submit the topology again with this version"
            )
            raise PackageError(msg)
        return msgspec.json.decode(data, type=PackageManifest)
    except msgspec.MsgspecError as error:
        msg = f"{place}: not a manifest: {error}; submit the topology again"
        raise PackageError(msg) from error


def read_manifest(folder: Path) -> PackageManifest:
    """The manifest of an unpacked package.

    Raises:
        PackageError: when it is not there or cannot be read.
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

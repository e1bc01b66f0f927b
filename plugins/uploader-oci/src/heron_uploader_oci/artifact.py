"""The manifest of a package in the registry: its layers in order, and annotations."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from heron.errors import PackageError
from heron.spi.typed_values import decode_json
from heron_driver_kit.packages import PackageName
from heron_uploader_oci.registry import MANIFEST_BYTES, MANIFEST_TYPE
from heron_uploader_oci.tags import package_of

__all__ = [
    "CONFIG",
    "Artifact",
    "Descriptor",
    "Manifest",
    "decode_manifest",
    "encode_manifest",
    "is_removed",
    "new_manifest",
    "read_artifact",
    "removed_manifest",
]

_CONFIG_TYPE = "application/vnd.heron.package.config.v1+json"
_LAYER_TYPE = "application/vnd.heron.package.part.v1.tar+gzip"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = "io.heron.package.name"
_SHA256 = "io.heron.package.sha256"
_CREATED = "org.opencontainers.image.created"

_REMOVED = "io.heron.removed"

CONFIG = b"{}"
"""The content of the configuration, which every manifest must have."""


class Descriptor(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A blob: its type, digest (``sha256:…``) and size in bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}

    @classmethod
    def layer(cls, digest: str, size_bytes: int) -> Descriptor:
        """A layer of a package."""
        return cls(_LAYER_TYPE, digest, size_bytes)

    @classmethod
    def config(cls, media_type: str = _CONFIG_TYPE) -> Descriptor:
        """The descriptor of `CONFIG`."""
        return cls(media_type, f"sha256:{hashlib.sha256(CONFIG).hexdigest()}", len(CONFIG))


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """An image manifest of OCI; packages and signatures have this form."""

    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: dict[str, str] = {}
    media_type: str = MANIFEST_TYPE
    schema_version: int = 2


@dataclass(frozen=True, slots=True)
class Artifact:
    """A package in the registry."""

    package: PackageName
    layers: tuple[Descriptor, ...]
    created_s: float | None
    """When it was stored, by the registry's clock; None if the manifest does not say it."""

    @property
    def size_bytes(self) -> int:
        """The size of the package."""
        return sum(each.size for each in self.layers)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON.

    Raises:
        PackageError: when it is larger than registries take.
    """
    data = msgspec.json.encode(manifest)
    if len(data) > MANIFEST_BYTES:
        msg = (
            f"the manifest of {len(manifest.layers)} layers has {len(data)} bytes, more than the limit of "
            f"{MANIFEST_BYTES} bytes; put files of 64 KiB or more together into archives"
        )
        raise PackageError(msg)
    return data


def new_manifest(package: PackageName, layers: Sequence[Descriptor], created_s: float) -> bytes:
    """Return the manifest of a package as JSON."""
    created = datetime.fromtimestamp(created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotations = {_CREATED: created, _NAME: package.name, _SHA256: package.digest}
    return encode_manifest(Manifest(Descriptor.config(), tuple(layers), annotations))


def removed_manifest() -> bytes:
    """Return a manifest that no other tag has; a tag that means it is removed."""
    config = Descriptor.config()
    return encode_manifest(Manifest(config, (config,), {_REMOVED: secrets.token_hex(16)}))


def is_removed(data: bytes) -> bool:
    """Return whether a manifest is one of `removed_manifest`."""
    found = decode_manifest(data)
    return found is not None and _REMOVED in found.annotations


def decode_manifest(data: bytes) -> Manifest | None:
    """Return a manifest; None when the bytes are not an image manifest with possible digests and sizes."""
    try:
        found = decode_json(data, Manifest)
    except msgspec.MsgspecError:
        return None
    blobs = (found.config, *found.layers)
    return found if all(_DIGEST.fullmatch(each.digest) and each.size >= 0 for each in blobs) else None


def read_artifact(data: bytes, name: str, digest: str = "") -> Artifact | None:
    """Return the package that a manifest describes; None when it describes none of that name (and SHA-256)."""
    found = decode_manifest(data)
    if found is None or found.config.media_type != _CONFIG_TYPE:
        return None
    package = package_of(f"{found.annotations.get(_NAME, '')}-{found.annotations.get(_SHA256, '')}")
    if package is None or package.name != name or digest not in {"", package.digest}:
        return None
    try:
        created_s = datetime.fromisoformat(found.annotations.get(_CREATED, "")).timestamp()
    except (ValueError, OverflowError):
        created_s = None
    return Artifact(package, found.layers, created_s)

"""Reads the layers of a package in sequence, and checks the digest of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from heron.errors import PackageError
from heron_uploader_oci.artifact import Descriptor
from heron_uploader_oci.registry import Registry

__all__ = ["LayerReader"]


class LayerReader:
    """A source for `heron_driver_kit.packages.receive`: after an interruption it goes on where it was."""

    def __init__(self, registry: Registry, layers: Sequence[Descriptor], what: str) -> None:
        self._registry = registry
        self._layers = layers
        self._what = what
        self._at = 0  # of the layers
        self._have = 0  # of the bytes of that layer
        self._found = hashlib.sha256()

    def read(self, _offset: int) -> Iterator[bytes]:
        """Yield what has not been yielded yet.

        Raises:
            PackageError: when a layer is missing, has other bytes than its digest says, or is longer.
        """
        while self._at < len(self._layers):
            layer = self._layers[self._at]
            if self._have < layer.size:
                yield from self._rest(layer)
            if (found := f"sha256:{self._found.hexdigest()}") != layer.digest:
                msg = (
                    f"{self._what}: the SHA-256 of layer {self._at + 1} of {len(self._layers)} is {found[7:]}, not "
                    f"{layer.digest[7:]}; the registry's copy was changed or is incomplete, submit again with "
                    "`--set uploader.check_layers=true`, which stores such layers anew"
                )
                raise PackageError(msg)
            self._at, self._have, self._found = self._at + 1, 0, hashlib.sha256()

    def _rest(self, layer: Descriptor) -> Iterator[bytes]:
        for chunk in self._registry.read_blob(layer.digest, self._have):
            self._have += len(chunk)
            if self._have > layer.size:
                msg = f"{self._what}: layer {layer.digest} is longer than {layer.size} bytes; do not trust this package"
                raise PackageError(msg)
            self._found.update(chunk)
            yield chunk

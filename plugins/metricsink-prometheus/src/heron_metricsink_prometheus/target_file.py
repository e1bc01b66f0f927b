"""The file by which Prometheus finds the page of a container (``file_sd_configs``)."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from pathlib import Path

import msgspec

from heron.errors import SinkError
from heron.spi.metricsink import Source

__all__ = ["TargetFile", "page_address"]

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104  # only compared


class TargetFile:
    """``heron-TOPOLOGY-CONTAINER.json`` in a folder, from the first record to `remove`.

    After a kill of the metrics manager the file stays until the next metrics manager of the container replaces it.
    """

    def __init__(self, directory: Path, source: Source, address: str) -> None:
        """Write the file by a rename, so that Prometheus never reads an incomplete file.

        Raises:
            SinkError: when the folder cannot be created or written to.
        """
        self._path = directory / f"heron-{_NOT_ALLOWED.sub('_', source.topology)}-{source.container_id}.json"
        unfinished = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(msgspec.json.encode([{"targets": [address], "labels": {}}]))
            unfinished.replace(self._path)
        except OSError as error:
            msg = f"metricsink.targets_directory: cannot write {self._path}: {error}; choose another folder"
            raise SinkError(msg, lost=1, reason="unserved") from error

    def remove(self) -> None:
        """Remove the file. Idempotent."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def page_address(host: str, port: int) -> str:
    """Return the address for Prometheus: the host, or the name of this machine if the page listens on all addresses."""
    name = socket.gethostname() if host in _WILDCARDS else host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

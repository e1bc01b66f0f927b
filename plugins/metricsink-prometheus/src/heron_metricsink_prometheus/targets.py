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

__all__ = ["TargetFile", "reached_as"]

_STRANGE = re.compile(r"[^A-Za-z0-9_-]")
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104  # compared with, not listened at


class TargetFile:
    """``heron-TOPOLOGY-CONTAINER.json`` in a folder; there as long as the page is, and after a kill until the next."""

    def __init__(self, directory: Path, source: Source, address: str) -> None:
        """Writes it, in one step, so that Prometheus never reads a half.

        Raises:
            SinkError: when the folder cannot be made or written to.
        """
        self._path = directory / f"heron-{_STRANGE.sub('_', source.topology)}-{source.container_id}.json"
        unfinished = self._path.with_suffix(f".{os.getpid()}.tmp")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(msgspec.json.encode([{"targets": [address], "labels": {}}]))
            unfinished.replace(self._path)
        except OSError as error:
            msg = f"metricsink.targets_directory: cannot write {self._path}: {error}; choose another folder"
            raise SinkError(msg, lost=1, reason="unserved") from error

    def remove(self) -> None:
        """Takes it away. Idempotent."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def reached_as(host: str, port: int) -> str:
    """How others reach the page: under the machine's name where it listens on all addresses."""
    name = socket.gethostname() if host in _WILDCARDS else host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

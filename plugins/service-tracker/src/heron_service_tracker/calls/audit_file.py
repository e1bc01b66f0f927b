"""The file that says who changed what: one JSON line for each action that begins or ends."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from heron.driver_kit.private_files import check_private, make_private_dir
from heron.errors import StoreError

__all__ = ["AuditFile"]


class AuditFile:
    """A file that only grows, with mode 0600. `append` is for any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **entry: object) -> None:
        """Write one line.

        Raises:
            StoreError: when it cannot be written.
        ConfigError: when other users can access it.
        """
        line = msgspec.json.encode(entry) + b"\n"
        try:
            make_private_dir(self.path.parent)
            check_private(self.path, "audit file")
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                written = os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            msg = f"the audit file {self.path}: {error.strerror or error}"
            raise StoreError(msg) from error
        if written != len(line):
            msg = f"the audit file {self.path}: only {written} of {len(line)} bytes were written; the disk is full"
            raise StoreError(msg)

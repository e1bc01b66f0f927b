"""Unfinished files and folders carry their owner in the name, so that others can remove those of dead processes.

An owner is ``HOME-PID-TOKEN``. HOME identifies the boot of a machine and the process namespace, within which a process
id is unique.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["OWNER", "home", "is_dead", "new_owner"]

OWNER: Final = r"(?P<home>[0-9a-f]{8})-(?P<pid>\d{1,10})-[0-9a-f]{16}"
"""The form of an owner, for a regular expression."""

_ABANDONED_MS = 3_600_000  # no process needs an hour for one request


def new_owner() -> str:
    """Return an owner that no other call returns, in any process of any machine."""
    return f"{home()}-{os.getpid()}-{secrets.token_hex(8)}"


def is_dead(owner: Mapping[str, str], modified_ms: int, now_ms: int) -> bool:
    """Return whether the owner's process has ended here, or has changed nothing for an hour by the clock of HDFS.

    `owner` has the ``home`` and ``pid`` of a match of `OWNER`.
    """
    if owner["home"] == home() and not Path(f"/proc/{owner['pid']}").exists():
        return True
    return modified_ms < now_ms - _ABANDONED_MS


def home() -> str:
    """Return the identity of the boot of this machine and the process namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return hashlib.sha256(f"{boot}{os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]

"""The owners of unfinished files."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from heron_hdfs_kit.owner import OWNER, home, is_dead, new_owner

HOUR_MS = 3_600_000


def test_an_owner_names_its_process_and_is_unique() -> None:
    """Two calls in one process write two files."""
    first, second = new_owner(), new_owner()
    assert first != second
    match = re.fullmatch(OWNER, first)
    assert match is not None
    assert match.groupdict() == {"home": home(), "pid": str(os.getpid())}


def test_a_process_that_has_ended_here_is_dead_at_once_and_others_after_an_hour() -> None:
    """The number of a process says nothing on another machine."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here, there = home(), "00000000"
    assert is_dead({"home": here, "pid": str(ended.pid)}, 0, 0)
    assert not is_dead({"home": here, "pid": str(os.getpid())}, 0, HOUR_MS)
    assert not is_dead({"home": there, "pid": str(ended.pid)}, 0, HOUR_MS)
    assert is_dead({"home": there, "pid": str(os.getpid())}, 0, HOUR_MS + 1)

"""A launcher that hangs ends itself, because its cluster sees only that a process has ended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from heron_testing.contracts.scheduler import runs
from heron_testing.fake_executor import alive
from heron_testing.waiting import wait_until

_LIMIT_S = 30.0


def test_a_launcher_that_hangs_ends_with_its_stacks_and_its_executor(tmp_path: Path) -> None:
    """The cluster starts it again, and the next attempt is counted as after the loss of a machine."""
    program = Path(__file__).with_name("hanging_launcher.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert re.search(r"Timeout .*File .*hanging_launcher\.py\", line \d+ in read\n", ended.stderr, re.DOTALL)
    note = alive(tmp_path, 1)
    wait_until(lambda: note is None or not runs(note.pid), _LIMIT_S, "the executor has ended too")

"""kill -9 of a command at every instant leaves the old or the new state, and the next command cleans up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("instants.py")
WALK_S = 500.0  # ends a hang; a busy machine needs 20 times as long as an idle one


@pytest.fixture
def root() -> Iterator[Path]:
    """A path that is short enough for sockets; remaining processes of a failed walk are killed."""
    folder = Path(tempfile.mkdtemp(prefix="hi-"))
    yield folder
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"{folder}/".encode() in each.read_bytes():
                os.kill(int(each.parent.name), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("command", "before", "through"),
    [pytest.param("submit", "killed", "starting", marks=pytest.mark.guarantee), ("kill", "starting", "killed")],
)
def test_after_a_kill_at_any_instant_the_next_command_finds_the_old_or_new_state(
    root: Path, command: str, before: str, through: str
) -> None:
    """The script fails if no command removes a remaining job, node, package, process or run directory.

    Guarantee: a command that is killed leaves the old or the new state.
    """
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), command, str(root)],
        capture_output=True,
        text=True,
        timeout=WALK_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    walked = [json.loads(line) for line in done.stdout.splitlines()]
    found = [each["found"] for each in walked]
    assert len(walked) > 30, "the command changes more than that"
    assert set(found) <= {"", "starting", "killed"}, walked
    assert found[0] == before, "died before it began"
    assert found[-1] == through
    assert not walked[-1]["touched"]

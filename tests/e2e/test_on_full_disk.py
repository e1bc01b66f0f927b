"""A disk with state, packages, jobs and logs that fills up while data flows."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from line_journal import SCALED, Lines

from servers.absence import not_here

if TYPE_CHECKING:
    from conftest import Sandbox

DISK = "size=8m"


@pytest.fixture
def disk(sandbox: Sandbox) -> Iterator[Path]:
    """A small file system at HOME/.heron; needs root."""
    folder = sandbox.home / ".heron"
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"{DISK},mode=700", "heron-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        not_here(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while _written(file.fileno()):
            pass
    try:
        yield
    finally:
        ballast.unlink()


def _written(descriptor: int) -> bool:
    try:
        return os.write(descriptor, bytes(4096)) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


@pytest.mark.servers
def test_a_full_disk_stops_commands_and_not_the_data(sandbox: Sandbox, disk: Path) -> None:
    """A process that must write names the error and the path. With space again all goes on, and no line is missing."""
    lines = Lines(sandbox, *SCALED)
    lines.flow("the start")
    with full(disk):
        lines.flow("the disk was full")
        refused = sandbox.start("steady.py", command="submit local")
        assert refused.wait() == 2, refused.all_output
        assert "no space left on" in refused.stderr.lower(), refused.all_output
        for role, name in (("instance", "/split-"), ("stmgr", "/c1/"), ("tmanager", "/c0/")):
            lines.run.processes(role, name)[0].kill()
        output = sandbox.output_of("status", "journal", code=1)
        assert "its topology manager is being restarted" in output, output
    lines.flow("there was room again")
    assert '"state": "running"' in sandbox.output_of("status", "journal", "--json", "--timeout", "60")
    lines.finish()
    assert "steady" not in sandbox.output_of("list")

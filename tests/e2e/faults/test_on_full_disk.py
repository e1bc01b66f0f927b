"""A disk with state, packages, jobs and logs that fills up while data flows."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron.ipc.documents.metric_names import CHECKPOINTS_FAILED
from heron_testing_servers.absence import not_here
from line_journal import SCALED, Lines

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

DISK = "size=8m"


@pytest.fixture
def disk(sandbox: Sandbox) -> Iterator[Path]:
    """A small file system at HOME/.heron; needs root."""
    with small_disk(sandbox.home / ".heron") as folder:
        yield folder


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A new folder that is a small file system."""
    folder.mkdir(mode=0o700, parents=True)
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


@pytest.mark.servers
def test_a_full_disk_fails_checkpoints_and_the_next_one_succeeds(sandbox: Sandbox) -> None:
    """The failures are counted in status and metrics, with the path; data flows, and no line is lost or doubled."""
    with small_disk(sandbox.home / ".heron" / "checkpoints") as disk:
        run = sandbox.start("exactly_once.py", *SCALED, args=("--interval", "0.5"))
        run.until(lambda: committed(run.out), "committed lines")
        with full(disk):
            run.until(lambda: sandbox.checkpoints("exactly_once")["failed"] > 0, "a failed checkpoint")
            failed = sandbox.checkpoints("exactly_once")
            assert str(disk) in failed["last_error"]
            assert "no space left on" in failed["last_error"].lower()
            run.grows(lambda: sandbox.executed("exactly_once", "commit"), "data")
            run.until(lambda: metric(sandbox, CHECKPOINTS_FAILED) > 0, "the metric")
            assert "failed; the last one:" in sandbox.output_of("status", "exactly_once")
            refused = sandbox.output_of("checkpoints", "exactly_once", "take", code=1)
            assert "no space left on" in refused.lower()
        run.until(lambda: sandbox.checkpoints("exactly_once")["complete"] > failed["complete"], "a complete checkpoint")
        listed = json.loads(sandbox.output_of("checkpoints", "exactly_once", "list", "--json"))
        assert listed
        assert sandbox.checkpoints("exactly_once")["restores"] == 0
        (run.out / "stop").touch()
        run.finished()
        assert check_committed(run.out, PARTITIONS) > 0


def metric(sandbox: Sandbox, name: str) -> float:
    """Return a metric of the topology manager."""
    rows = json.loads(sandbox.output_of("metrics", "exactly_once", "--json"))
    return sum(float(row["value"]) for row in rows if row["name"] == name)

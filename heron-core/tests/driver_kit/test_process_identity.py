"""A process is identified by its pid and its start time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from heron.driver_kit.child_processes import ProcessIdentity

pytestmark = pytest.mark.leaks_nothing


def test_a_process_is_alive_until_it_ends() -> None:
    """A zombie counts as ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(process.pid)
    assert identity.alive()
    process.communicate(b"\n")
    assert not identity.alive()
    assert not ProcessIdentity.of(process.pid).alive()


def test_the_same_pid_with_another_start_is_another_process() -> None:
    """The kernel uses pids again, and start times begin at 0 after a boot. Another process must not get the signal."""
    me = ProcessIdentity.of(os.getpid())
    ticks, boot = me.start.split("@")
    for start in (f"{int(ticks) + 1}@{boot}", f"{ticks}@another-boot", ""):
        other = ProcessIdentity(me.pid, start)
        assert not other.alive()
        other.signal(9)
        assert other.session() == ()


def test_a_session_outlives_its_leader() -> None:
    """Processes that a killed executor left are found by the session that it led."""
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(1, flush=True); input()"
    leader = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert leader.stdout is not None
    assert leader.stdin is not None
    leader.stdout.readline()
    identity = ProcessIdentity.of(leader.pid)
    assert len(identity.session()) == 2
    leader.kill()
    leader.wait()
    (child,) = identity.session()
    assert child.alive()
    leader.stdin.close()  # the child ends at the end of its input
    leader.stdout.read()
    leader.stdout.close()

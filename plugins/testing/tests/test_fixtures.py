"""The shipped fixtures: a clock that stands, a wait that ends, a guard that finds what was left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.clock import Clock
from heron_testing.fake_clock import FakeClock
from heron_testing.pytest_plugin import wait_until

if TYPE_CHECKING:
    from heron_testing.pytest_plugin import Eventually


def test_fake_clock_moves_only_when_told(fake_clock: FakeClock) -> None:
    """Tests of time-outs must not depend on the machine's speed."""
    clock: Clock = fake_clock
    before = (clock.monotonic_s(), clock.wall_s())
    fake_clock.advance(2.5)
    fake_clock.jump_wall(-10)
    assert (clock.monotonic_s(), clock.wall_s()) == (before[0] + 2.5, before[1] + 2.5 - 10)


def test_fake_clock_does_not_go_back(fake_clock: FakeClock) -> None:
    """Monotonic time never does, and a test that lets it would prove nothing."""
    with pytest.raises(ValueError, match="does not go back"):
        fake_clock.advance(-1)


def test_eventually_returns_what_became_true(eventually: Eventually) -> None:
    """The value is often what the test goes on with."""
    values = iter([0, 0, 5])
    assert eventually(lambda: next(values)) == 5


def test_eventually_ends_and_says_what_it_waited_for(eventually: Eventually) -> None:
    """A test that hangs tells nothing."""
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the moon is full; last value None"):
        eventually(lambda: None, 0.01, "the moon is full")


def run_test(source: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "test_it.py"
    path.write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


LEAKS = """
import pytest, subprocess, sys, threading

gate = threading.Event()

@pytest.mark.leaks_nothing
def test_thread():
    threading.Thread(target=gate.wait, daemon=True).start()

@pytest.mark.leaks_nothing
def test_process():
    global child
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

@pytest.mark.leaks_nothing
def test_clean():
    child.kill()
    child.wait()
    child.stdin.close()

def test_unmarked():
    gate.set()
"""


def test_leak_guard_finds_threads_and_processes(tmp_path: Path) -> None:
    """It must find both, and let pass who tidies up or did not ask."""
    done = run_test(LEAKS, tmp_path)
    assert "threads left behind" in done.stdout
    assert "child processes left behind" in done.stdout
    assert "4 passed, 2 errors" in done.stdout


def test_wait_until_is_quick() -> None:
    """It returns with the first look when there is nothing to wait for."""
    assert wait_until(threading.main_thread, timeout_s=0.0) is threading.main_thread()

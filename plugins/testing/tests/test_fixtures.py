"""The pytest plugin: its clock, its wait with a deadline, the mark ``leaks_nothing``, and its cost for other tests."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.clock import Clock
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.waiting import Eventually


def test_fake_clock_moves_only_on_request(fake_clock: FakeClock) -> None:
    """Tests of time-outs must not depend on the machine's speed."""
    clock: Clock = fake_clock
    before = (clock.monotonic_s(), clock.wall_s())
    fake_clock.advance(2.5)
    fake_clock.jump_wall(-10)
    assert (clock.monotonic_s(), clock.wall_s()) == (before[0] + 2.5, before[1] + 2.5 - 10)


def test_fake_clock_does_not_go_back(fake_clock: FakeClock) -> None:
    """Monotonic time never goes back, so a test that needs it proves nothing."""
    with pytest.raises(ValueError, match="does not go back"):
        fake_clock.advance(-1)


def test_eventually_returns_the_true_value(eventually: Eventually) -> None:
    """Tests often use the value."""
    values = iter([0, 0, 5])
    assert eventually(lambda: next(values)) == 5


def test_eventually_names_the_condition_at_its_deadline(eventually: Eventually) -> None:
    """A failure must name the condition; a test that hangs names nothing."""
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


@pytest.mark.matrix
def test_leaked_threads_and_processes_fail_the_test(tmp_path: Path) -> None:
    """Both are errors of the marked tests; clean tests and tests without the mark pass."""
    done = run_test(LEAKS, tmp_path)
    assert "threads left behind" in done.stdout
    assert "child processes left behind" in done.stdout
    assert "4 passed, 2 errors" in done.stdout


def test_wait_until_is_quick() -> None:
    """It returns after the first call if the condition already holds."""
    assert wait_until(threading.main_thread, timeout_s=0.0) is threading.main_thread()


FIXTURES = """
import contextlib, threading, pytest

@contextlib.contextmanager
def running():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()

@pytest.fixture(scope="module")
def shared():
    with running():
        yield

@pytest.fixture
def own():
    with running():
        yield

@pytest.fixture
def careless():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

@pytest.mark.leaks_nothing
def test_tidy(own, shared):
    pass

@pytest.mark.leaks_nothing
def test_careless(careless):
    pass
"""


@pytest.mark.matrix
def test_fixtures_of_a_test_count_only_if_they_leave_something(tmp_path: Path) -> None:
    """The thread of a module's fixture may stay; a fixture of one test must end its own threads."""
    done = run_test(FIXTURES, tmp_path)
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "ERROR at teardown of test_careless" in done.stdout


HEAVY = (
    "hypothesis",
    "msgspec",
    "click",
    "rich",
    "zmq",
    "google.protobuf",
    "heron.api",
    "heron.spi",
    "heron.driver_kit",
)


def test_plugin_imports_nothing_heavy() -> None:
    """Every run of pytest imports it, also for projects that have nothing to do with Heron."""
    program = "import sys; import heron_testing.pytest_plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {name for name in done.stdout.split() if name.startswith(HEAVY)}


def test_plugin_has_no_autouse_fixture(tmp_path: Path) -> None:
    """A test that uses nothing of the plugin runs without its fixtures."""
    path = tmp_path / "test_it.py"
    path.write_text("def test_plain(request):\n    assert request.fixturenames == ['request']\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:asyncio", "-p", "no:anyio", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "1 passed" in done.stdout, done.stdout

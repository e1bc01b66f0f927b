"""Role processes: exit codes, signals, and that no child outlives its parent. Everything here runs for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.driver_kit.child_processes import spawn
from heron.driver_kit.parent_process import DEATH_SIGNAL, PARENT_PID

if TYPE_CHECKING:
    from heron_testing.pytest_plugin import Eventually

pytestmark = pytest.mark.leaks_nothing

ROLE = """
import logging, os, select, signal, sys, threading
from pathlib import Path
from heron.errors import HeronError
from heron.driver_kit.log import configure
from heron.kernel.role_process import run_role

from heron.driver_kit.child_processes import spawn
configure(Path({log!r}), process="role")
def main(signals):
    {body}
run_role("tester", main)
"""
WAIT = "select.select([signals], [], [])"


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def role(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a role whose main function has the given body."""

    def start(body: str, **settings: object) -> subprocess.Popen[bytes]:
        script = tmp_path / "role.py"
        script.write_text(ROLE.format(body=body, log=str(tmp_path / "role.log")))
        with (tmp_path / "out").open("wb") as out:
            return spawn([sys.executable, str(script)], stdout=out, **settings)  # type: ignore[arg-type]

    return start


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.mark.parametrize(("body", "code"), [("return 0", 0), ("return 7", 7)])
def test_exit_code_is_what_main_returns(role: Start, body: str, code: int) -> None:
    """The scheduler reads it: 0 means that the container is done."""
    assert role(body).wait(20) == code


def test_heron_error_is_one_line(role: Start, tmp_path: Path) -> None:
    """An error that explains itself needs no traceback."""
    assert role("raise HeronError('no space in /x; free some')").wait(20) == 1
    assert (tmp_path / "out").read_text() == "heron tester: error: no space in /x; free some\n"
    assert "tester ends: no space in /x; free some" in (tmp_path / "role.log").read_text()


def test_other_exception_has_its_traceback_in_the_log(role: Start, tmp_path: Path) -> None:
    """A fault of ours: one line for who started it, everything for who mends it."""
    assert role("raise ValueError('oops')").wait(20) == 1
    assert (tmp_path / "out").read_text().startswith("heron tester: ValueError: oops; ")
    assert "Traceback" in (tmp_path / "role.log").read_text()


def test_death_of_a_thread_is_logged(role: Start, tmp_path: Path) -> None:
    """A thread that ends unnoticed leaves a process that only looks alive."""
    body = "t = threading.Thread(target=lambda: 1 / 0, name='gateway'); t.start(); t.join(); return 0"
    assert role(body).wait(20) == 0
    assert "thread gateway ended by ZeroDivisionError" in (tmp_path / "role.log").read_text()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_signal_wakes_the_poller(role: Start, tmp_path: Path, eventually: Eventually, sent: signal.Signals) -> None:
    """An orderly stop must not wait for the next message."""
    body = (
        f"print('up', flush=True); {WAIT}; "
        "print(signals.read()[0].name, signals.stop_requested, signals.read(), flush=True); return 3"
    )
    process = role(body)
    eventually(lambda: "up" in (tmp_path / "out").read_text(), what="the role is up")
    process.send_signal(sent)
    assert process.wait(20) == 3
    assert (tmp_path / "out").read_text().splitlines()[1] == f"{sent.name} True ()"


def test_child_does_not_see_how_it_was_tied(role: Start, tmp_path: Path) -> None:
    """What the child starts in turn has another parent and would leave at once."""
    assert role("print([each for each in os.environ if each.startswith('HERON_')]); return 0").wait(20) == 0
    assert (tmp_path / "out").read_text() == "[]\n"


def test_child_has_its_own_process_group_and_no_input(role: Start, tmp_path: Path) -> None:
    """Ctrl-C reaches the command alone, which then stops the others in order."""
    process = role("print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), repr(sys.stdin.read())); return 0")
    assert process.wait(20) == 0
    assert (tmp_path / "out").read_text() == "True False ''\n"


def test_detached_child_has_its_own_session(role: Start, tmp_path: Path) -> None:
    """A submitted topology outlives the terminal it was submitted from."""
    process = role("print(os.getsid(0) == os.getpid()); return 0", detached=True, death_signal=None)
    assert process.wait(20) == 0
    assert (tmp_path / "out").read_text() == "True\n"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_child_ends_with_its_killed_parent(role: Start, tmp_path: Path, eventually: Eventually, name: str) -> None:
    """``kill -9`` of a parent gives it no chance to tidy up; the kernel tells its children."""
    child = tmp_path / "child.py"
    log = str(tmp_path / "child.log")
    child.write_text(ROLE.format(body=f"print(os.getpid(), flush=True); {WAIT}; return 0", log=log))
    parent = role(f"spawn([sys.executable, {str(child)!r}], stdout=1, death_signal=signal.{name}); {WAIT}; return 0")
    pid = int(eventually(lambda: (tmp_path / "out").read_text().strip(), what="the child is up"))
    parent.kill()
    parent.wait(20)
    eventually(lambda: not running(pid), what="the child is gone")


def test_child_of_a_parent_that_is_gone_leaves_at_once(tmp_path: Path) -> None:
    """The parent may end between the start of the child and its first act; then no signal comes."""
    child = tmp_path / "child.py"
    child.write_text(ROLE.format(body=WAIT, log=str(tmp_path / "child.log")))
    env = {**os.environ, PARENT_PID: "1", DEATH_SIGNAL: "SIGKILL"}
    assert subprocess.run([sys.executable, child], env=env, timeout=20, check=False).returncode == 1

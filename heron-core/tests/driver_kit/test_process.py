"""Role processes: exit codes, signals, and the end of children with their parent. The tests use real processes."""

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
from heron.driver_kit.parent_process import DEATH_SIGNAL, END_NOTE, PARENT_PID

if TYPE_CHECKING:
    from heron_testing.waiting import Eventually

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
    """Returns a function that starts a role process with the given body of its main function."""

    def start(body: str, **settings: object) -> subprocess.Popen[bytes]:
        script = tmp_path / "role.py"
        script.write_text(ROLE.format(body=body, log=str(tmp_path / "role.log")))
        with (tmp_path / "out").open("wb") as out:
            return spawn([sys.executable, str(script)], stdout=out, **settings)  # type: ignore[arg-type]

    return start


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.mark.parametrize(("body", "code"), [("return 0", 0), ("return 7", 7)])
def test_exit_code_is_what_main_returns(role: Start, body: str, code: int) -> None:
    """The scheduler reads the exit code: 0 means that the container has finished."""
    assert role(body).wait(20) == code


def test_heron_error_is_one_line(role: Start, tmp_path: Path) -> None:
    """Its message has the cause and the remedy."""
    assert role("raise HeronError('no space in /x; free some')").wait(20) == 1
    assert (tmp_path / "out").read_text() == "heron tester: error: no space in /x; free some\n"
    assert "tester ends: no space in /x; free some" in (tmp_path / "role.log").read_text()


def test_other_exception_has_its_traceback_in_the_log(role: Start, tmp_path: Path) -> None:
    """The user gets one line; developers find the traceback in the log."""
    assert role("raise ValueError('oops')").wait(20) == 1
    assert (tmp_path / "out").read_text().startswith("heron tester: ValueError: oops; ")
    assert "Traceback" in (tmp_path / "role.log").read_text()


def test_exception_that_ends_a_thread_is_logged(role: Start, tmp_path: Path) -> None:
    """Without this, a process without a working thread would look alive."""
    body = "t = threading.Thread(target=lambda: 1 / 0, name='gateway'); t.start(); t.join(); return 0"
    assert role(body).wait(20) == 0
    assert "thread gateway ended by ZeroDivisionError" in (tmp_path / "role.log").read_text()


def test_threads_of_the_author_do_not_hold_the_process(role: Start, tmp_path: Path) -> None:
    """Python waits for every thread that is not a daemon; the process names such a thread and ends without it."""
    body = "threading.Thread(target=threading.Event().wait, name='poller').start(); raise HeronError('no table')"
    assert role(body).wait(20) == 1
    shown = (tmp_path / "out").read_text().splitlines()
    assert shown[0] == shown[2] == "heron tester: error: no table"  # the executor shows the last line as the reason
    assert "ends after 2 s without waiting for the threads 'poller' (at " in shown[1]


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "raise KeyboardInterrupt", "sys.stderr = None; 1 / 0"])
def test_what_is_raised_never_chooses_the_exit_code(role: Start, body: str) -> None:
    """The codes of Heron have meanings for the executor."""
    assert role(body).wait(20) == 1


@pytest.mark.parametrize(("body", "noted"), [("return 3", True), ("os._exit(3)", False), ("return 1", False)])
def test_a_code_with_a_meaning_is_noted(role: Start, tmp_path: Path, body: str, noted: bool) -> None:
    """Author's code can end the process with the same number."""
    note = tmp_path / f"spec{END_NOTE}"
    role(f"sys.argv[1:] = [{str(tmp_path / 'spec.json')!r}]; {body}").wait(20)
    assert note.exists() == noted


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_signal_wakes_the_poller(role: Start, tmp_path: Path, eventually: Eventually, sent: signal.Signals) -> None:
    """A clean stop must not wait for the next message."""
    body = (
        f"print('up', flush=True); {WAIT}; "
        "print(signals.read()[0].name, signals.stop_requested, signals.read(), flush=True); return 3"
    )
    process = role(body)
    eventually(lambda: "up" in (tmp_path / "out").read_text(), what="the role is up")
    process.send_signal(sent)
    assert process.wait(20) == 3
    assert (tmp_path / "out").read_text().splitlines()[1] == f"{sent.name} True ()"


def test_child_does_not_inherit_the_parent_variable(role: Start, tmp_path: Path) -> None:
    """A grandchild has another parent and would exit at once."""
    assert role("print([each for each in os.environ if each.startswith('HERON_')]); return 0").wait(20) == 0
    assert (tmp_path / "out").read_text() == "[]\n"


def test_child_has_its_own_process_group_and_no_input(role: Start, tmp_path: Path) -> None:
    """Ctrl-C reaches only the command, which stops the other processes in order."""
    process = role("print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), repr(sys.stdin.read())); return 0")
    assert process.wait(20) == 0
    assert (tmp_path / "out").read_text() == "True False ''\n"


def test_detached_child_has_its_own_session(role: Start, tmp_path: Path) -> None:
    """A submitted topology continues after its terminal is closed."""
    process = role("print(os.getsid(0) == os.getpid()); return 0", detached=True, death_signal=None)
    assert process.wait(20) == 0
    assert (tmp_path / "out").read_text() == "True\n"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_child_ends_with_its_killed_parent(role: Start, tmp_path: Path, eventually: Eventually, name: str) -> None:
    """A parent cannot clean up after SIGKILL; the kernel sends a signal to its children."""
    child = tmp_path / "child.py"
    log = str(tmp_path / "child.log")
    child.write_text(ROLE.format(body=f"print(os.getpid(), flush=True); {WAIT}; return 0", log=log))
    parent = role(f"spawn([sys.executable, {str(child)!r}], stdout=1, death_signal=signal.{name}); {WAIT}; return 0")
    pid = int(eventually(lambda: (tmp_path / "out").read_text().strip(), what="the child is up"))
    parent.kill()
    parent.wait(20)
    eventually(lambda: not running(pid), what="the child is gone")


def test_child_of_an_ended_parent_exits_at_once(tmp_path: Path) -> None:
    """If the parent ends before the child requests the signal, the kernel sends no signal."""
    child = tmp_path / "child.py"
    child.write_text(ROLE.format(body=WAIT, log=str(tmp_path / "child.log")))
    env = {**os.environ, PARENT_PID: "1", DEATH_SIGNAL: "SIGKILL"}
    assert subprocess.run([sys.executable, child], env=env, timeout=20, check=False).returncode == 1

"""The sandbox: what it needs, what it refuses, and that it ends with its tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from heron.errors import UsageError
from heron_testing.heron_run import processes_of
from heron_testing.sandbox import Sandbox
from heron_testing.sandbox_commands import HERON, start_process
from heron_testing.waiting import wait_until

ENDLESS = """
import sys, time

from heron.api import Spout, TopologyBuilder


class Endless(Spout):
    outputs = ("number",)

    def next_tuple(self):
        self.emit([1])
        time.sleep(0.01)


builder = TopologyBuilder(sys.argv[sys.argv.index("--name") + 1])
builder.add_spout("numbers", Endless, par=1)
builder.build_and_submit()
"""

TESTS = """
import os, signal
from pathlib import Path

import pytest

from heron_testing.waiting import wait_until

HERE = Path(__file__).parent


@pytest.fixture
def sandbox_programs():
    return HERE


def test_it(sandbox):
    (HERE / "root").write_text(str(sandbox.root))
    sandbox.run("endless.py", command="submit local", args=("--name", "submitted"))
    run = sandbox.start("endless.py", args=("--name", "runs"))
    sandbox.wait_for_tasks(run, "runs")
    wait_until(lambda: {each["state"] for each in sandbox.status("submitted")["tasks"]} == {"running"}, 60.0)
    (HERE / "instances").write_text(str(len(run.processes("instance"))))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Path]:
    """The folder of tests that kill their pytest; whatever they leave is killed afterwards."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stdout
    yield tmp_path
    left = processes_of(Path((tmp_path / "root").read_text()) / "home")
    for process in left:
        process.kill()
    psutil.wait_procs(left)


@pytest.mark.matrix
def test_a_killed_pytest_leaves_no_process_and_no_folder(killed: Path) -> None:
    """A run and a submitted topology would otherwise disturb all later tests on this machine."""
    assert (killed / "instances").read_text() == "2"
    root = Path((killed / "root").read_text())
    wait_until(lambda: not processes_of(root / "home"), 30.0, "the processes are gone")
    wait_until(lambda: not root.exists(), 30.0, "the folder is gone")


def test_a_relative_path_needs_the_folder_of_the_programs(tmp_path: Path) -> None:
    """The current folder of pytest is a matter of chance."""
    with pytest.raises(UsageError, match=r"words\.py: .* define the fixture sandbox_programs"):
        Sandbox(tmp_path).start("words.py")


@pytest.mark.matrix
@pytest.mark.parametrize("absent", ["heron_cli", "psutil"])
def test_the_extra_is_named_if_it_is_not_installed(absent: str) -> None:
    """The test kit works without the command; only a sandbox needs it."""
    program = f"import sys; sys.modules[{absent!r}] = None; import heron_testing.sandbox"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    needs = f"UsageError: a sandbox needs {absent}, which is not installed: pip install 'heron-testing[sandbox]'"
    assert ran.stderr.splitlines()[-1].removeprefix("heron.errors.") == needs


@pytest.mark.parametrize(
    "words",
    [
        ("status", "nothing"),
        *(pytest.param(words, marks=pytest.mark.matrix) for words in (("--version",), ("list", "--json"), ("run",))),
    ],
    ids=" ".join,
)
def test_a_forked_command_does_what_a_new_interpreter_does(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A variable for the interpreter makes the difference."""
    ended = []
    for number, own in enumerate(({}, {"PYTHONHASHSEED": "1"})):
        out, err = tmp_path / f"out{number}", tmp_path / f"err{number}"
        environ = {**os.environ, "HOME": str(tmp_path), "COLUMNS": "200", **own}
        process = start_process([str(HERON), *words], environ, tmp_path, out, err)
        assert isinstance(process, subprocess.Popen) == bool(own)
        ended.append((process.wait(60.0), out.read_text(), err.read_text()))
    assert ended[0] == ended[1]
    assert ended[0][1] or ended[0][2]


def test_a_forked_command_looks_like_a_program_and_gets_signals(tmp_path: Path) -> None:
    """Tests find its processes by HOME, and interrupt it as a terminal does."""
    program = tmp_path / "endless.py"
    program.write_text("import time\ntime.sleep(3600)\n")
    words = [str(HERON), "run", str(program)]
    environ = {**os.environ, "HOME": str(tmp_path)}
    process = start_process(words, environ, tmp_path, tmp_path / "out", tmp_path / "err")
    found: list[psutil.Process] = []

    def is_there() -> bool:
        found[:] = [each for each in processes_of(tmp_path) if each.pid == process.pid]
        return bool(found)

    wait_until(is_there, 30.0)
    (seen,) = found
    assert (seen.cmdline(), seen.cwd()) == ([sys.executable, *words], str(tmp_path))
    assert (os.getpgid(process.pid), seen.ppid()) == (process.pid, os.getpid())
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60.0) != 0
    assert process.poll() == process.returncode

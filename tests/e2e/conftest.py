"""Runs `heron` as a person would, each test in a world of its own, and looks for what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
import pytest

from heron_cli.launch.report import RunReport
from heron_testing.pytest_plugin import wait_until

__all__ = ["HeronRun", "Sandbox", "sandbox_at"]

HERON = Path(sys.executable).with_name("heron")
TOPOLOGIES = Path(__file__).parent / "topologies"
EXAMPLES = Path(__file__).parents[2] / "examples"

_RUN_S = 90.0  # a run of a few seconds, on a machine that is busy with others
_GONE_S = 5.0  # what an executor has to leave in; the promise of the whole
_ROLE_MODULES = {
    "supervisor": "heron_scheduler_local.supervisor",
    "spark supervisor": "heron_scheduler_spark.supervisor",
    "pyspark worker": "pyspark.worker",
    "spark driver": "heron_scheduler_spark.spark_driver",
}


@dataclass
class HeronRun:
    """One `heron` command; `out` is the folder that its topology writes results to."""

    process: subprocess.Popen[bytes]
    folder: Path
    home: Path
    out: Path

    @property
    def stdout(self) -> str:
        """What it has written so far."""
        return (self.folder / "stdout").read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self) -> str:
        """What it has written so far."""
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    @property
    def spoken(self) -> str:
        """All that it has said, for the message of a failed assertion."""
        return f"--- stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-6000:]}"

    def wait(self, timeout_s: float = _RUN_S) -> int:
        """The exit code, once it has ended."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s\n{self.spoken}") from None  # noqa: EM102

    def finished(self, timeout_s: float = _RUN_S) -> RunReport:
        """The report of a run that has to succeed."""
        code = self.wait(timeout_s)
        assert code == 0, self.spoken
        report = self.report()
        assert report.state == "finished", self.spoken
        return report

    def report(self) -> RunReport:
        """What ``--report`` wrote."""
        return msgspec.json.decode((self.folder / "report.json").read_bytes(), type=RunReport)

    def results(self, component: str) -> dict[int, list[list[object]]]:
        """What the tasks of a component have written, by task id."""
        found: dict[int, list[list[object]]] = {}
        for path in sorted(self.out.glob(f"{component}-*.json")):
            found[int(path.stem.rpartition("-")[2])] = json.loads(path.read_bytes())
        return found

    def until(self, predicate: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
        """Waits for something of this run; fails at once when the command ends before it."""

        def look() -> bool:
            if predicate():
                return True
            assert self.process.poll() is None, f"{what}: the command has ended\n{self.spoken}"
            return False

        try:
            wait_until(look, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.spoken}") from None  # noqa: EM102

    def printed(self, text: str, timeout_s: float = 60.0) -> None:
        """Waits until it has written that, to either stream."""
        self.until(lambda: text in self.stdout or text in self.stderr, f"{text!r} in the output", timeout_s)

    def processes(self, role: str, name: str = "") -> list[psutil.Process]:
        """The processes that play a role, such as ``stmgr``; `name` is part of the ``/FOLDER/FILE`` of their specs."""
        return [process for process, _ in self.commands(role, name)]

    def commands(self, role: str, name: str = "") -> list[tuple[psutil.Process, list[str]]]:
        """The same with the command line of each, as it was at that moment: any of them may end at any time."""
        module = _ROLE_MODULES.get(role, f"heron.{role}.main")
        found = []
        for process in _processes_of(self.home):
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                # What is before them has random names, in which anything may occur.
                if module in command and name in "/".join(["", *Path(command[-1]).parts[-2:]]):
                    found.append((process, command))
        return found

    def the(self, role: str, name: str = "") -> psutil.Process:
        """The only such process, once it is there."""
        found: list[psutil.Process] = []

        def one() -> bool:
            found[:] = self.processes(role, name)
            return len(found) == 1

        self.until(one, f"one {role} {name}")
        return found[0]


@dataclass
class Sandbox:
    """A home, a folder for temporary files and whatever a test runs in them; short paths, for the sockets' sake.

    `environ` are variables of the test's own, for everything that is started after they are set.
    """

    root: Path
    runs: list[HeronRun] = field(default_factory=list)
    submits: bool = False
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """HOME: state, packages, jobs and logs."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """TMPDIR: run directories."""
        return self.root / "tmp"

    @property
    def env(self) -> dict[str, str]:
        """The environment of everything in it."""
        own = {"HOME": str(self.home), "TMPDIR": str(self.tmp), "COLUMNS": "200", "TERM": "xterm"}
        return {**os.environ, **own, **self.environ}

    def heron(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs `heron WORDS` to its end, which must have that exit code."""
        done = subprocess.run(
            [str(HERON), *words],
            env=self.env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_RUN_S,
            check=False,
        )
        assert done.returncode == code, f"heron {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done

    def say(self, *words: str, code: int = 0) -> str:
        """Runs `heron WORDS` beside what runs already and returns what it printed, or as an error, with that code."""
        ended = self.heron(*words, code=code)
        return ended.stderr if code else ended.stdout

    def start(
        self,
        target: Path | str,
        *options: str,
        args: tuple[str, ...] = (),
        command: str = "run",
        wrapper: tuple[str, ...] = (),
        stdin: int = subprocess.DEVNULL,
    ) -> HeronRun:
        """Starts `WRAPPER heron COMMAND TARGET OPTIONS -- ARGS` in a process group of its own; COMMAND may be words.

        A target without a folder is one of the tests' own topologies; those are told where to write by ``--out``.
        """
        number = len(self.runs)
        self.submits |= command.startswith("submit")
        folder, out = self.root / f"run{number}", self.root / f"out{number}"
        folder.mkdir()
        out.mkdir()
        path = Path(target)
        if not path.is_absolute():
            path, args = TOPOLOGIES / target, ("--out", str(out), *args)
        words = [*wrapper, str(HERON), *command.split(), str(path), *options]
        if command == "run":
            words += ["--report", str(folder / "report.json")]
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [*words, "--", *args],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self.env,
                cwd=self.root,
                process_group=0,
            )
        run = HeronRun(process, folder, self.home, out)
        self.runs.append(run)
        return run

    def run(self, target: Path | str, *options: str, args: tuple[str, ...] = (), command: str = "run") -> HeronRun:
        """As `start`, and waits for its end."""
        run = self.start(target, *options, args=args, command=command)
        run.wait()
        return run

    def log_text(self, name: str = "*") -> str:
        """The engine's logs and the tasks' output of every run, joined."""
        files = sorted((self.home / ".heron" / "logs").glob(f"*/{name}"))
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())

    def leftovers(self) -> list[str]:
        """Processes, sockets, temporary files, state nodes, packages and jobs that are still there."""
        found = [f"process {_spoken(each)}" for each in _processes_of(self.home)]
        found += [f"temporary {each.name}" for each in self.tmp.iterdir()]
        heron = self.home / ".heron"
        for kind in ("state", "packages", "jobs", "spark"):
            # State keeps hidden counters, so that versions go on growing, and a day long reports of what was submitted.
            files = [each.relative_to(heron) for each in heron.glob(f"{kind}/**/[!.]*") if each.is_file()]
            found += [str(each) for each in files if not (self.submits and each.parts[:2] == ("state", "reports"))]
        return found

    def close(self) -> None:
        """Ends whatever a failed test has left running."""
        for run in self.runs:
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()
            if run.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    run.process.stdin.close()
        for process in _processes_of(self.home):
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A world of the test's own; a test that leaves anything behind in it fails."""
    with sandbox_at(Path(tempfile.mkdtemp(prefix="he2e-")), request) as box:
        yield box


@contextlib.contextmanager
def sandbox_at(root: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The same in a folder that is somewhere for a reason, and goes with it."""
    box = Sandbox(root)
    box.home.mkdir(parents=True)
    box.tmp.mkdir()
    failed_before = request.session.testsfailed
    try:
        yield box
        for run in box.runs:
            if run.process.poll() is None:
                run.process.send_signal(signal.SIGINT)
                run.wait()
        if request.session.testsfailed == failed_before:
            _leaves_nothing(box)
    finally:
        box.close()


@pytest.fixture
def examples() -> Path:
    """The folder of the examples."""
    return EXAMPLES


def _leaves_nothing(box: Sandbox) -> None:
    try:
        wait_until(lambda: not box.leftovers(), _GONE_S)
    except AssertionError:
        left = box.leftovers()
        assert not left, f"still there {_GONE_S} s after the end: {left}\n{box.log_text('*.log')[-4000:]}"


def _processes_of(home: Path) -> list[psutil.Process]:
    """Every process that has this HOME, zombies excepted; the command itself, its children and theirs."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _spoken(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())}"
    return str(process.pid)

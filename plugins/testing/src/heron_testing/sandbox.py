"""Run `heron` as a user would, each test in its own sandbox, and look for what it leaves behind."""

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
from typing import Any

import msgspec
import psutil
import pytest

from heron.ipc.status import encode_status
from heron_cli.client import Client, connect
from heron_cli.launch.run_report import RunReport
from heron_testing.pytest_plugin import wait_until

__all__ = ["HeronRun", "Sandbox", "sandbox_at"]

HERON = Path(sys.executable).with_name("heron")
TOPOLOGIES = Path(__file__).parent / "topologies"
EXAMPLES = Path(__file__).parents[2] / "examples"

_HERE = Path(__file__).parent
_IN_DEV_TEST = ("guarantee", "starts_nothing")
_RUN_S = 90.0  # a run of a few seconds, on a busy machine
_GONE_S = 5.0  # the time in which an executor must exit, which the engine promises for any end
_ROLE_MODULES = {
    "supervisor": "heron_scheduler_local.supervisor",
    "spark supervisor": "heron_scheduler_spark.supervisor",
    "pyspark worker": "pyspark.worker",
    "spark driver": "heron_scheduler_spark.spark_driver",
    "health": "heron_health_manager.manager_process",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark `matrix` to each test of this folder that `./dev test` does not run."""
    for item in items:
        if item.path.parent == _HERE and not any(map(item.get_closest_marker, _IN_DEV_TEST)):
            item.add_marker("matrix")


@dataclass
class HeronRun:
    """One `heron` command; `out` is the folder of the topology's results."""

    process: subprocess.Popen[bytes]
    folder: Path
    home: Path
    out: Path

    @property
    def stdout(self) -> str:
        """Its standard output so far."""
        return (self.folder / "stdout").read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self) -> str:
        """Its standard error so far."""
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    @property
    def all_output(self) -> str:
        """All its output, for the message of a failed assertion."""
        return f"--- stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-6000:]}"

    def wait(self, timeout_s: float = _RUN_S) -> int:
        """Wait for the end and return the exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s\n{self.all_output}") from None  # noqa: EM102

    def finished(self, timeout_s: float = _RUN_S) -> RunReport:
        """Return the report of a run that must succeed."""
        code = self.wait(timeout_s)
        assert code == 0, self.all_output
        report = self.report()
        assert report.state == "finished", self.all_output
        return report

    def report(self) -> RunReport:
        """Return the content of the ``--report`` file."""
        return msgspec.json.decode((self.folder / "report.json").read_bytes(), type=RunReport)

    def results(self, component: str) -> dict[int, list[list[object]]]:
        """Return what the tasks of a component have written, by task id."""
        found: dict[int, list[list[object]]] = {}
        for path in sorted(self.out.glob(f"{component}-*.json")):
            found[int(path.stem.rpartition("-")[2])] = json.loads(path.read_bytes())
        return found

    def until(self, predicate: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
        """Wait for a condition of this run; fail at once when the command ends before it."""

        def look() -> bool:
            if predicate():
                return True
            assert self.process.poll() is None, f"{what}: the command has ended\n{self.all_output}"
            return False

        try:
            wait_until(look, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.all_output}") from None  # noqa: EM102

    def printed(self, text: str, timeout_s: float = 60.0) -> None:
        """Wait until either output stream contains the text."""
        self.until(lambda: text in self.stdout or text in self.stderr, f"{text!r} in the output", timeout_s)

    def processes(self, role: str, name: str = "") -> list[psutil.Process]:
        """Return the processes of a role, such as ``stmgr``; `name` is part of the ``/FOLDER/FILE`` of their specs."""
        return [process for process, _ in self.commands(role, name)]

    def commands(self, role: str, name: str = "") -> list[tuple[psutil.Process, list[str]]]:
        """Return the same processes with their command lines at that moment; any of them may end at any time."""
        module = _ROLE_MODULES.get(role, f"heron.{role}.main")
        found = []
        for process in _processes_of(self.home):
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                # The folders above have random names, which may contain any text.
                if module in command and name in "/".join(["", *Path(command[-1]).parts[-2:]]):
                    found.append((process, command))
        return found

    def the(self, role: str, name: str = "") -> psutil.Process:
        """Wait for the process and return it; there must be only one."""
        found: list[psutil.Process] = []

        def one() -> bool:
            found[:] = self.processes(role, name)
            return len(found) == 1

        self.until(one, f"one {role} {name}")
        return found[0]


@dataclass
class Sandbox:
    """A home, a folder for temporary files, and the processes of a test. Its paths are short enough for sockets.

    `environ` are variables of the test, for all processes that start after they are set.
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
        """The environment of all its processes."""
        own = {"HOME": str(self.home), "TMPDIR": str(self.tmp), "COLUMNS": "200", "TERM": "xterm"}
        return {**os.environ, **own, **self.environ}

    def heron(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run `heron WORDS` to its end and check the exit code."""
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

    def is_known(self, topology: str) -> bool:
        """Whether the state of the profile ``local`` has a running topology; commands wait for its start from then on.

        A command that lists topologies would need a quarter of a second of a processor each time.
        """
        return (self.home / ".heron" / "state" / "executionstate" / topology).exists()

    def status(self, topology: str, timeout_s: float = 10.0) -> dict[str, Any]:
        """Return the part of `heron status --json` about a running topology of the profile ``local``.

        This process asks: a command needs a quarter of a second of a processor, and a test that waits asks often.
        """
        with self._client() as client, client.topology(topology, timeout_s=timeout_s) as remote:
            found: dict[str, Any] = json.loads(encode_status(remote.status()))
        return found

    def metrics(self, topology: str, component: str) -> list[dict[str, Any]]:
        """Return what `heron metrics --component COMPONENT --json` prints; this process asks, as for the status."""
        with self._client() as client:
            found: list[dict[str, Any]] = json.loads(msgspec.json.encode(client.metrics(topology, component=component)))
        return found

    def _client(self) -> Client:
        heron = self.home / ".heron"
        overrides = {"statemgr.root": str(heron / "state"), "scheduler.root": str(heron / "jobs")}
        return connect("local", overrides=overrides, read_only=True)

    def output_of(self, *words: str, code: int = 0) -> str:
        """Run `heron WORDS` beside other runs, check the exit code, and return its output or error output."""
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
        """Start `WRAPPER heron COMMAND TARGET OPTIONS -- ARGS` in a new process group; COMMAND may be several words.

        A target without a folder is one of the topologies of these tests; ``--out`` gives it the folder of its results.
        """
        self.submits |= command.startswith("submit")
        folder, out = self._folders()
        path = Path(target)
        if not path.is_absolute():
            path, args = TOPOLOGIES / target, ("--out", str(out), *args)
        words = [*wrapper, str(HERON), *command.split(), str(path), *options]
        if command == "run":
            words += ["--report", str(folder / "report.json")]
        return self._launch([*words, "--", *args], folder, out, stdin)

    def start_command(self, *words: str) -> HeronRun:
        """Start `heron WORDS` beside a run; the command is ended with the test."""
        folder, out = self._folders()
        return self._launch([str(HERON), *words], folder, out, subprocess.DEVNULL)

    def _folders(self) -> tuple[Path, Path]:
        number = len(self.runs)
        folder, out = self.root / f"run{number}", self.root / f"out{number}"
        folder.mkdir()
        out.mkdir()
        return folder, out

    def _launch(self, command: list[str], folder: Path, out: Path, stdin: int) -> HeronRun:
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                command,
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
        """Start a command as `start` does, and wait for its end."""
        run = self.start(target, *options, args=args, command=command)
        run.wait()
        return run

    def log_text(self, name: str = "*") -> str:
        """Return the engine's logs and the tasks' output of all runs, joined."""
        files = sorted((self.home / ".heron" / "logs").glob(f"*/{name}"))
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())

    def remaining(self) -> list[str]:
        """Return the processes, sockets, temporary files, state nodes, packages and jobs that still exist."""
        found = [f"process {_description(each)}" for each in _processes_of(self.home)]
        found += [f"temporary {each.name}" for each in self.tmp.iterdir()]
        heron = self.home / ".heron"
        for kind in ("state", "packages", "jobs", "spark"):
            # The state keeps hidden counters, so versions go on growing, and reports of submitted topologies for a day.
            files = [each.relative_to(heron) for each in heron.glob(f"{kind}/**/[!.]*") if each.is_file()]
            found += [str(each) for each in files if not (self.submits and each.parts[:2] == ("state", "reports"))]
        return found

    def close(self) -> None:
        """End all processes that a failed test has left."""
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
    """A sandbox for one test; the test fails if it leaves anything in it."""
    with sandbox_at(Path(tempfile.mkdtemp(prefix="he2e-")), request) as box:
        yield box


@contextlib.contextmanager
def sandbox_at(root: Path, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox in a given folder, which is removed at the end."""
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
        wait_until(lambda: not box.remaining(), _GONE_S)
    except AssertionError:
        left = box.remaining()
        assert not left, f"still there {_GONE_S} s after the end: {left}\n{box.log_text('*.log')[-4000:]}"


def _processes_of(home: Path) -> list[psutil.Process]:
    """Return every process with this HOME except zombies: the command, its children and their children."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _description(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())}"
    return str(process.pid)

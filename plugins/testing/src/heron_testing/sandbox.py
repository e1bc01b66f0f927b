"""A sandbox for topologies under test: `heron` runs in it as users run it, and a test sees what it leaves behind.

The fixture `sandbox` of `heron_testing.pytest_plugin` makes one for a test. It needs the extra
``heron-testing[sandbox]``: the command, the drivers of the profile ``local``, and psutil.

A sandbox ends with the process of its tests, whatever ends that process: a guard then kills what runs in the sandbox,
and removes its folder.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heron.errors import UsageError
from heron.ipc.documents.status import encode_status
from heron_testing import sandbox_guard
from heron_testing.waiting import wait_until

try:
    import psutil

    from heron_cli.client import Client, connect
    from heron_testing.heron_run import RUN_S, HeronRun, processes_of
    from heron_testing.sandbox_commands import HERON, start_process
except ModuleNotFoundError as error:
    _ABSENT = (error.name or "").partition(".")[0]
    _MISSING = f"a sandbox needs {_ABSENT}, which is not installed: pip install 'heron-testing[sandbox]'"
    raise UsageError(_MISSING) from error

__all__ = ["Sandbox", "sandbox_at"]

_GONE_S = 5.0  # the time in which an executor must exit, which the engine promises for any end
_ANSWER_S = 75.0  # less than `RUN_S`, so that a command says itself what does not answer
_GUARD_S = 30.0  # to kill and to remove what a test has left, on a busy machine


@dataclass
class Sandbox:
    """A home and a folder for temporary files, in which commands of `heron` run.

    Attributes:
        root: the folder of everything; its path is short enough for sockets.
        programs: the folder of the topologies that `start` finds by a relative path.
        runs: the commands that were started, in this order.
        submits: whether reports of submitted topologies may remain, which the state keeps for a day. `start` sets it.
        environ: variables for all processes that start after they are set.
    """

    root: Path
    programs: Path | None = None
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
        """Run ``heron WORDS`` to its end. It waits up to 75 s for an answer; with the code 1 its own time limit.

        Raises:
            AssertionError: when the exit code is not `code`; it has the output.
            subprocess.TimeoutExpired: after 90 s.
        """
        folder = Path(tempfile.mkdtemp(prefix="command", dir=self.root))
        out, err = folder / "stdout", folder / "stderr"
        patience = {} if code == 1 else {"HERON_TIMEOUT": f"{_ANSWER_S:g}"}  # 1: that no answer comes may be expected
        process = start_process([str(HERON), *words], {**patience, **self.env}, self.root, out, err)
        try:
            ended = process.wait(RUN_S)
        finally:
            process.kill()
            process.wait()
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        done = subprocess.CompletedProcess([str(HERON), *words], ended, *texts)
        assert done.returncode == code, f"heron {' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done

    def is_known(self, topology: str) -> bool:
        """Whether the state of the profile ``local`` has a running topology; commands wait for its start from then on.

        A command that lists topologies would need a quarter of a second of a processor each time.
        """
        return (self.home / ".heron" / "state" / "executionstate" / topology).exists()

    def write_profile(self, name: str, text: str) -> tuple[str, str]:
        """Write the profile `name` of this sandbox, in YAML; return the options that select it."""
        folder = self.home / ".heron" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return "--profile", name

    def status(self, topology: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """Return ``status`` of the document of ``heron status --json``, of a topology of the profile ``local``.

        This process asks: a command needs a quarter of a second of a processor, and a test that waits asks often.

        Raises:
            UsageError: when the state has no such topology.
            UnreachableError: when its topology manager does not answer within `timeout_s` seconds.
        """
        with self._client.topology(topology, timeout_s=timeout_s) as remote:
            found: dict[str, Any] = json.loads(encode_status(remote.status()))
        return found

    def status_document(self, topology: str, *options: str) -> dict[str, Any]:
        """Return the document of ``heron status TOPOLOGY OPTIONS --json``, of any profile.

        Raises:
            AssertionError: when the command fails.
        """
        document: dict[str, Any] = json.loads(self.output_of("status", topology, *options, "--json"))
        return document

    def executed(self, topology: str, component: str) -> int:
        """Return how many tuples a component of a topology of the profile ``local`` has executed.

        Raises:
            UsageError, UnreachableError: as `status`.
        """
        return sum(each["executed"] for each in self.status(topology)["components"] if each["name"] == component)

    def checkpoints(self, topology: str) -> dict[str, Any]:
        """Return ``checkpoints`` of the status: the counts ``complete``, ``failed`` and ``restores``, and others.

        Raises:
            UsageError, UnreachableError: as `status`.
        """
        found: dict[str, Any] = self.status(topology)["checkpoints"]
        return found

    def update(self, topology: str, *parallelism: str, containers: int = 0) -> dict[str, Any]:
        """Run ``heron update`` to its end and return what it prints as JSON.

        Args:
            topology: the name of a topology of the profile ``local``.
            parallelism: ``COMPONENT:TASKS``, of each component that changes.
            containers: the number of containers; 0 keeps the present number.

        Raises:
            AssertionError: when the command fails.
        """
        words = [word for each in parallelism for word in ("--component-parallelism", each)]
        words += ["--container-number", str(containers)] if containers else []
        done: dict[str, Any] = json.loads(self.output_of("update", topology, *words, "--json"))
        return done

    def wait_for_state(self, run: HeronRun, topology: str) -> None:
        """Wait until the state of the profile ``local`` has the topology that `run` starts.

        Raises:
            AssertionError: when the command ends before it, or after 60 s.
        """
        run.until(lambda: self.is_known(topology), f"the state of {topology}")

    def wait_for_tasks(self, run: HeronRun, topology: str, timeout_s: float = 60.0) -> None:
        """Wait until all tasks run of the topology that `run` starts, with the profile ``local``.

        The status shows a topology as running from its start, and its tasks as running when they have a plan.

        Raises:
            AssertionError: when the command ends before it, or after `timeout_s` seconds.
        """
        self.wait_for_state(run, topology)

        def all_run() -> bool:
            return {task["state"] for task in self.status(topology, timeout_s)["tasks"]} == {"running"}

        run.until(all_run, f"all tasks of {topology} run", timeout_s)

    def metrics(self, topology: str, component: str) -> list[dict[str, Any]]:
        """Return what ``heron metrics --component COMPONENT --json`` prints; this process asks, as for the status.

        Raises:
            UsageError, UnreachableError: as `status`.
        """
        rows = self._client.metrics(topology, component=component)
        found: list[dict[str, Any]] = json.loads(msgspec.json.encode(rows))
        return found

    @functools.cached_property
    def _client(self) -> Client:
        """Opened once: it reads the metadata of all distributions."""
        heron = self.home / ".heron"
        overrides = {"statemgr.root": str(heron / "state"), "scheduler.root": str(heron / "jobs")}
        return connect("local", overrides=overrides, read_only=True)

    def output_of(self, *words: str, code: int = 0) -> str:
        """Run ``heron WORDS`` to its end; return its output, or its error output if `code` is not 0.

        Raises:
            AssertionError: when the exit code is not `code`; it has the output.
        """
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
        """Start ``WRAPPER heron COMMAND TARGET OPTIONS -- ARGS`` in a new process group, and return at once.

        Args:
            target: the file of a topology. A relative path is one of `programs`, and gets the arguments
                ``--out FOLDER``, with the folder `HeronRun.out`.
            options: options of the command.
            args: arguments of the file.
            command: ``run`` or ``submit PROFILE``, or another command, also of several words.
            wrapper: a command that starts the command.
            stdin: as of `subprocess.Popen`.

        Raises:
            UsageError: when the target is a relative path and there are no `programs`.
        """
        self.submits |= command.startswith("submit")
        folder, out = self._folders()
        path = Path(target)
        if not path.is_absolute():
            if self.programs is None:
                msg = f"{target}: a relative path needs a folder of programs: define the fixture sandbox_programs"
                raise UsageError(msg)
            path, args = self.programs / target, ("--out", str(out), *args)
        words = [*wrapper, str(HERON), *command.split(), str(path), *options]
        if command == "run":
            words += ["--report", str(folder / "report.json")]
        return self._launch([*words, "--", *args], folder, out, stdin)

    def start_command(self, *words: str) -> HeronRun:
        """Start ``heron WORDS`` and return at once; the command is ended with the test."""
        folder, out = self._folders()
        return self._launch([str(HERON), *words], folder, out, subprocess.DEVNULL)

    def _folders(self) -> tuple[Path, Path]:
        number = len(self.runs)
        folder, out = self.root / f"run{number}", self.root / f"out{number}"
        folder.mkdir()
        out.mkdir()
        return folder, out

    def _launch(self, command: list[str], folder: Path, out: Path, stdin: int) -> HeronRun:
        process = start_process(command, self.env, self.root, folder / "stdout", folder / "stderr", stdin)
        run = HeronRun(process, folder, self.home, out)
        self.runs.append(run)
        return run

    def run(self, target: Path | str, *options: str, args: tuple[str, ...] = (), command: str = "run") -> HeronRun:
        """Start a command as `start` does, and wait for its end.

        Raises:
            AssertionError: when it still runs after 90 s.
        """
        run = self.start(target, *options, args=args, command=command)
        run.wait()
        return run

    def log_text(self, name: str = "*") -> str:
        """Return the engine's logs and the tasks' output of all runs, joined."""
        files = sorted((self.home / ".heron" / "logs").glob(f"*/{name}"))
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())

    def remaining(self) -> list[str]:
        """Return the processes, sockets, temporary files, state nodes, packages and jobs that still exist."""
        found = [f"process {_description(each)}" for each in processes_of(self.home)]
        found += [f"temporary {each.name}" for each in self.tmp.iterdir()]
        heron = self.home / ".heron"
        for kind in ("state", "packages", "jobs", "spark"):
            # The state keeps hidden counters, so versions go on growing, and reports of submitted topologies for a day.
            # A run that ends removes folders meanwhile, which `glob` of Python 3.11 and 3.12 does not expect.
            paths = [Path(place, name) for place, _, names in os.walk(heron / kind) for name in names]
            files = [each.relative_to(heron) for each in paths if not each.name.startswith(".") and each.is_file()]
            found += [str(each) for each in files if not (self.submits and each.parts[:2] == ("state", "reports"))]
        return found

    def close(self) -> None:
        """End the commands that a failed test has left; the guard ends what these have started."""
        for run in self.runs:
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()
            if run.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    run.process.stdin.close()
        if "_client" in vars(self):
            self._client.close()


@contextlib.contextmanager
def sandbox_at(root: Path, request: pytest.FixtureRequest, programs: Path | None = None) -> Iterator[Sandbox]:
    """A sandbox in the folder `root`, which is removed at the end; for a fixture with another scope than a test.

    At the end it interrupts the commands that run, and waits for them.

    Raises:
        AssertionError: at the end, when no test has failed meanwhile and something is left 5 s later.
    """
    box = Sandbox(root, programs)
    box.home.mkdir(parents=True)
    box.tmp.mkdir()
    failed_before = request.session.testsfailed
    with _guarded(root):
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


@contextlib.contextmanager
def _guarded(root: Path) -> Iterator[None]:
    """Let a guard end what runs in the sandbox, at the end of this context or of this process."""
    # In its own session: what ends the group or the terminal of the tests must not end the guard.
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", sandbox_guard.__file__, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.communicate(timeout=_GUARD_S)


def _leaves_nothing(box: Sandbox) -> None:
    try:
        wait_until(lambda: not box.remaining(), _GONE_S)
    except AssertionError:
        left = box.remaining()
        assert not left, f"still there {_GONE_S} s after the end: {left}\n{box.log_text('*.log')[-4000:]}"


def _description(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())}"
    return str(process.pid)

"""A run of the chaos topology: a home, a folder for temporary files, `heron run`, and its processes by name."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from chaos.committed import PARTITIONS, CommittedFlow
from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Kind
from chaos.flow import Flow
from chaos.mode import Mode
from heron.clock import monotonic_s
from heron_testing.waiting import wait_until

__all__ = ["ChaosRun", "kind_of"]

_ROOT = Path(__file__).resolve().parents[1]
_TOPOLOGIES = {Mode.AT_LEAST_ONCE: "lines.py", Mode.EFFECTIVELY_ONCE: "partitions.py"}
_COMPONENTS = {"lines": Kind.SPOUT} | dict.fromkeys(("split", "journal", "count", "commit"), Kind.BOLT)
# Otherwise the engine would rightly leave down processes that die this often.
_NEVER_GIVE_UP = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")
_START_S = 60.0
_END_S = 90.0
_GONE_S = 5.0  # the limit that the engine promises for any end
_STATUS_S = 30.0
_AHEAD_S = 1.0  # lines that are still to be made when the spouts shall stop


class ChaosRun:
    """A context manager that starts the run, waits until lines flow, and ends it whatever happened.

    Names of processes are ``cCONTAINER/PROCESS``, as in ``c1/split-3``, ``c2/stmgr``, ``c0/executor``.
    """

    def __init__(
        self,
        rate: int,
        *,
        journal: bool = True,
        standbys: int = 0,
        options: Sequence[str] = (),
        mode: Mode = Mode.AT_LEAST_ONCE,
        updates: bool = False,
        state: bool = False,
    ) -> None:
        """`rate` is in lines a second, 0 means unlimited; `options` are further options of ``heron run``.

        With `updates`, the processes of the topology change during the run. With `state`, it counts at least once in
        state that survives.
        """
        self.mode, self.updates, self._rate = mode, updates, rate
        self._options = (*_NEVER_GIVE_UP, "--set", f"topology.tmanager.standbys={standbys}", *options)
        self._count = sum(COUNTS.values()) + standbys
        self.root = Path(tempfile.mkdtemp(prefix="hch-"))  # short, because socket paths have at most 107 bytes
        self.files = self._folder("files")
        self._began_s = monotonic_s()
        self.state_is_kept = state or mode is Mode.EFFECTIVELY_ONCE
        kept = ("--journal", str(int(journal)), "--state", str(int(state)))
        own = kept if mode is Mode.AT_LEAST_ONCE else ("--began", str(self._began_s))
        self._arguments = ("--folder", str(self.files), "--rate", str(rate), *own)
        self._home, self._tmp = self._folder("home"), self._folder("tmp")
        self.flow = Flow(self.files) if mode is Mode.AT_LEAST_ONCE else CommittedFlow(self.files, self._began_s)

    def __enter__(self) -> Self:
        topology = Path(__file__).parent / "topology-files" / _TOPOLOGIES[self.mode]
        command = [
            str(Path(sys.executable).with_name("heron")),
            "run",
            str(topology),
            *self._options,
            "--",
            *self._arguments,
        ]
        with (self.root / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environ(),
                process_group=0,
            )
        try:
            self.until(lambda: self.is_whole() and all(self.flow.made()), _START_S, "the start of the run")
            self._tasks = _numbered(self.processes())
            self.until(lambda: self.flows(tuple(self._tasks.values()), (0, 0)), _START_S, "the first lines")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GONE_S)
        for process in self._alive():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def remove(self) -> None:
        """Remove all files of the run."""
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def state(self) -> Path:
        """The folder of the state manager."""
        return self._home / ".heron" / "state"

    def processes(self) -> dict[str, psutil.Process]:
        """Return the running processes of the containers by name, in order."""
        found: dict[str, psutil.Process] = {}
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    name, parent = _name(process.cmdline()), process.parent()
                    if name and (parent is None or _name(parent.cmdline()) != name):  # else it has not called exec yet
                        found[name] = process
        return dict(sorted(found.items()))

    def is_whole(self) -> bool:
        """Return whether every process exists."""
        return len(self.processes()) == self._count

    def every_process(self) -> dict[str, psutil.Process]:
        """Return the same processes, and those that belong to no container."""
        command = psutil.Process(self._process.pid)
        supervisors = {"supervisor": each for each in command.children()}  # noqa: B035  # there is at most one
        return {"command": command, **supervisors, **self.processes()}

    def tasks(self, name: str) -> tuple[str, ...]:
        """Return the tasks that run in a process, or whose data passes it, with the names of `Flow`.

        If tasks come and go, or all of them return to a checkpoint, these are the tasks through which all lines pass.
        """
        if self.updates or self.state_is_kept:
            return self.flow.everything
        container, _, process = name.partition("/")
        if process in ("executor", "stmgr"):
            return tuple(task for place, task in self._tasks.items() if place.startswith(f"{container}/"))
        return (self._tasks[name],) if name in self._tasks else ()

    def flows(self, tasks: tuple[str, ...], lines: tuple[int, ...]) -> bool:
        """Return whether all these tasks have handled lines after `lines`."""
        return all(self.flow.has_passed(task, lines) for task in tasks)

    def metrics_bytes(self, container: str) -> int:
        """Return the size of the metrics file of a container, such as ``c1``."""
        return sum(path.stat().st_size for path in self._home.glob(f".heron/logs/*/metrics-{container[1:]}.jsonl"))

    def check_alive(self) -> None:
        """Raise ChaosError if the command has ended."""
        if self._process.poll() is not None:
            raise ChaosError(self.failure(f"the run ended with exit code {self._process.returncode}"))

    def stop_spouts(self) -> None:
        """Tell the spouts to make no more lines. The topology ends when all lines are acked, or committed."""
        lines = int((monotonic_s() - self._began_s + _AHEAD_S) * self._rate / PARTITIONS) + 1  # of each partition
        new = self.files / "stop.new"
        new.write_text(str(lines), encoding="utf-8")
        new.replace(self.files / "stop")

    def wait_for_end(self) -> None:
        """Wait for the end of the topology.

        Raises:
            ChaosError: when it does not end by itself, or fails.
        """
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise ChaosError(self.failure(f"the run did not end within {_END_S:g} s")) from None
        if code != 0:
            raise ChaosError(self.failure(f"the run ended with exit code {code}"))

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment, such as `heron`, to its end, beside the topology."""
        program = str(Path(sys.executable).parent / words[0])
        return subprocess.run(
            [program, *words[1:]],
            env=self._environ(),
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def checkpoints(self) -> dict[str, object]:
        """Return what `heron status` reports about the checkpoints; waits for a leader.

        Raises:
            ChaosError: when there is none, or the command ends.
        """
        found: dict[str, object] = {}

        def has_answered() -> bool:
            asked = self.command("heron", "status", "chaos", "--json")
            if asked.returncode == 0:
                found.update(json.loads(asked.stdout)["status"]["checkpoints"])
            return bool(found)

        self.until(has_answered, _STATUS_S, "the status")
        return found

    def until(self, holds: Callable[[], bool], within_s: float, what: str) -> None:
        """Wait until `holds()`.

        Raises:
            ChaosError: when that takes too long, or the command ends.
        """

        def look() -> bool:
            self.check_alive()
            return holds()

        try:
            wait_until(look, within_s, what)
        except AssertionError:
            raise ChaosError(self.failure(f"{what}: not within {within_s:g} s")) from None

    def remaining(self) -> list[str]:
        """Return processes, temporary files, state, packages and jobs that exist five seconds after the end."""
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._left(), _GONE_S, "nothing left")
        return self._left()

    def failure(self, what: str) -> str:
        """Return a message with the last output of the command."""
        words = (self.root / "output").read_text(encoding="utf-8", errors="replace").strip()[-1000:]
        return f"{what}; its last output: {words or 'none'}"

    def _left(self) -> list[str]:
        found = [f"process {process.pid}" for process in self._alive()]
        found += [f"temporary {path.name}" for path in self._tmp.iterdir()]
        heron = self._home / ".heron"
        for kind in ("state", "packages", "jobs"):
            found += [str(each.relative_to(heron)) for each in heron.glob(f"{kind}/**/[!.]*") if each.is_file()]
        return found

    def _alive(self) -> list[psutil.Process]:
        """Return every process of this home, whatever its parent."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("HOME") == str(self._home) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def _environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, "HOME": str(self._home), "TMPDIR": str(self._tmp)}

    def _folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir()
        return path


def kind_of(name: str) -> Kind:
    """Return the kind of the process with that name."""
    process = name.partition("/")[2]
    return _COMPONENTS.get(process.partition("-")[0]) or Kind(process)


def _name(command: list[str]) -> str:
    """Return the name of an engine process, from the path of its spec; "" for other processes."""
    path = Path(command[-1] if command else "")  # a dying process has no command line
    if "heron.executor.main" in command:
        return f"{path.stem}/executor"
    return f"{path.parent.name}/{path.stem}" if any(each.endswith(".main") for each in command) else ""


def _numbered(names: dict[str, psutil.Process]) -> dict[str, str]:
    """Map process names to task names: ``c2/journal-6`` is ``journal-1``, the second task of its component."""
    ids: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        component, _, task_id = name.partition("/")[2].rpartition("-")
        if component in _COMPONENTS:
            ids.setdefault(component, []).append((int(task_id), name))
    return {
        name: f"{component}-{index}"
        for component, found in ids.items()
        for index, (_, name) in enumerate(sorted(found))
    }

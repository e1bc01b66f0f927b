"""A run of the chaos topology: a home, a folder for temporary files, `heron run`, and its processes by name."""

from __future__ import annotations

import contextlib
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

from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Kind
from chaos.flow import Flow
from heron_testing.pytest_plugin import wait_until

__all__ = ["World", "kind_of"]

_TOPOLOGY = Path(__file__).parent / "topology-files" / "lines.py"
_COMPONENTS = {"lines": Kind.SPOUT, "split": Kind.BOLT, "journal": Kind.BOLT}
# Whoever dies so often would be given up otherwise, as it should be.
_PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")
_START_S = 60.0
_END_S = 90.0
_GONE_S = 5.0  # the promise for any end


class World:
    """A context manager: the run flows at its start, and is gone at its end whatever happened.

    Names of processes are ``cCONTAINER/PROCESS``, as in ``c1/split-3``, ``c2/stmgr``, ``c0/executor``.
    """

    def __init__(self, rate: int, *, journal: bool = True, standbys: int = 0, options: Sequence[str] = ()) -> None:
        """`rate` is in lines a second, 0 for all there can be; `options` are more of those of ``heron run``."""
        self._options = (*_PATIENT, "--set", f"topology.tmanager.standbys={standbys}", *options)
        self._count = sum(COUNTS.values()) + standbys
        self.root = Path(tempfile.mkdtemp(prefix="hch-"))  # short: paths of sockets end at 107 bytes
        self.files = self._folder("files")
        self._arguments = ("--folder", str(self.files), "--rate", str(rate), "--journal", str(int(journal)))
        self._home, self._tmp = self._folder("home"), self._folder("tmp")
        self.flow = Flow(self.files)

    def __enter__(self) -> Self:
        heron = Path(sys.executable).with_name("heron")
        command = [str(heron), "run", str(_TOPOLOGY), *self._options, "--", *self._arguments]
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with (self.root / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**inherited, "HOME": str(self._home), "TMPDIR": str(self._tmp)},
                process_group=0,
            )
        try:
            self.until(lambda: self.is_whole() and all(self.flow.made()), _START_S, "its start")
            self._tasks = _numbered(self.processes())
            self.until(lambda: self.flows(tuple(self._tasks.values()), (0, 0)), _START_S, "its first lines")
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
        """Everything that was written."""
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def state(self) -> Path:
        """Where its state manager keeps its nodes."""
        return self._home / ".heron" / "state"

    def processes(self) -> dict[str, psutil.Process]:
        """Those of the containers that run now, by name, in order."""
        found: dict[str, psutil.Process] = {}
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    name, parent = _name(process.cmdline()), process.parent()
                    if name and (parent is None or _name(parent.cmdline()) != name):  # else it has yet to become itself
                        found[name] = process
        return dict(sorted(found.items()))

    def is_whole(self) -> bool:
        """Whether every process is there."""
        return len(self.processes()) == self._count

    def every_process(self) -> dict[str, psutil.Process]:
        """The same, and those that belong to no container."""
        command = psutil.Process(self._process.pid)
        supervisors = {"supervisor": each for each in command.children()}  # noqa: B035  # there is one at most
        return {"command": command, **supervisors, **self.processes()}

    def tasks(self, name: str) -> tuple[str, ...]:
        """The tasks that run in a process, or whose data goes through it, as `Flow` knows them."""
        container, _, process = name.partition("/")
        if process in ("executor", "stmgr"):
            return tuple(task for place, task in self._tasks.items() if place.startswith(f"{container}/"))
        return (self._tasks[name],) if name in self._tasks else ()

    def flows(self, tasks: tuple[str, ...], lines: tuple[int, ...]) -> bool:
        """Whether lines beyond those have come to all these tasks."""
        return all(self.flow.beyond(task, lines) for task in tasks)

    def metrics_bytes(self, container: str) -> int:
        """How much the metrics manager of a container, such as ``c1``, has written to its file."""
        return sum(path.stat().st_size for path in self._home.glob(f".heron/logs/*/metrics-{container[1:]}.jsonl"))

    def check_alive(self) -> None:
        """Raises ChaosError when the command has ended."""
        if self._process.poll() is not None:
            raise ChaosError(self.failure(f"it ended with exit code {self._process.returncode}"))

    def say_stop(self) -> None:
        """Spouts make no more lines; when all are acked the topology ends."""
        (self.files / "stop").touch()

    def wait_for_end(self) -> None:
        """Raises ChaosError when it does not end by itself, or not well."""
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise ChaosError(self.failure(f"it did not end within {_END_S:g} s")) from None
        if code != 0:
            raise ChaosError(self.failure(f"it ended with exit code {code}"))

    def until(self, holds: Callable[[], bool], within_s: float, what: str) -> None:
        """Waits. Raises ChaosError when that takes too long, or the command ends."""

        def look() -> bool:
            self.check_alive()
            return holds()

        try:
            wait_until(look, within_s, what)
        except AssertionError:
            raise ChaosError(self.failure(f"{what}: not within {within_s:g} s")) from None

    def leftovers(self) -> list[str]:
        """Processes, temporary files, state, packages and jobs that are still there so long after the end."""
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._left(), _GONE_S, "nothing left")
        return self._left()

    def failure(self, what: str) -> str:
        """What happened, with the last words of the command."""
        words = (self.root / "output").read_text(encoding="utf-8", errors="replace").strip()[-1000:]
        return f"{what}; its last words: {words or 'none'}"

    def _left(self) -> list[str]:
        found = [f"process {process.pid}" for process in self._alive()]
        found += [f"temporary {path.name}" for path in self._tmp.iterdir()]
        heron = self._home / ".heron"
        for kind in ("state", "packages", "jobs"):
            found += [str(each.relative_to(heron)) for each in heron.glob(f"{kind}/**/[!.]*") if each.is_file()]
        return found

    def _alive(self) -> list[psutil.Process]:
        """Every process of this home, whoever its parent is."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("HOME") == str(self._home) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def _folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir()
        return path


def kind_of(name: str) -> Kind:
    """The kind of the process of that name."""
    process = name.partition("/")[2]
    return _COMPONENTS.get(process.partition("-")[0]) or Kind(process)


def _name(command: list[str]) -> str:
    """Of an engine process, from the path of its spec; "" for the others."""
    path = Path(command[-1] if command else "")  # one that has just died has none
    if "heron.executor.main" in command:
        return f"{path.stem}/executor"
    return f"{path.parent.name}/{path.stem}" if any(each.endswith(".main") for each in command) else ""


def _numbered(names: dict[str, psutil.Process]) -> dict[str, str]:
    """``c2/journal-6`` is ``journal-1``, the second of its component."""
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

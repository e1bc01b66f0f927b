"""A run of one topology: a home, `heron run`, its processes by name, and observations of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from ground_truth.errors import TruthError
from ground_truth.sites import SiteOf
from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.documents.status import TopologyStatus
from heron.spi.health_values import Observation
from heron_cli.client import connect
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_health_manager.observing.observing import observe

__all__ = ["Home", "Load", "TopologyRun"]

_TOPOLOGIES = Path(__file__).parent / "topology-files"
_START_S = 90.0
_GONE_S = 8.0
_ANSWER_S = 20.0
_POLL_S = 0.2
_FOR_EVER_S = 1e9
_PROFILE = "truth"
_USES = "task-time-s"


@dataclass(frozen=True, slots=True)
class Load:
    """A topology under a load: its file, its name, and the arguments of its file."""

    file: str
    name: str
    arguments: tuple[str, ...] = ()


class Home:
    """The home of all runs, for this process too, because it observes them as `heron health` does."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="hgt-"))  # short, because socket paths have at most 107 bytes
        for name, variable in (("home", "HOME"), ("tmp", "TMPDIR")):
            (self.root / name).mkdir()
            os.environ[variable] = str(self.root / name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def remove(self) -> None:
        """Kill the processes that are left, and remove all files."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid != os.getpid() and process.environ().get("HOME") == os.environ["HOME"]:
                    process.kill()
        shutil.rmtree(self.root, ignore_errors=True)


class TopologyRun:
    """A context manager that starts a topology, waits until all of its tasks report rates, and stops it."""

    def __init__(self, home: Home, load: Load, site_of: SiteOf) -> None:
        self._load, self._site_of = load, site_of
        self._folder = Path(tempfile.mkdtemp(prefix="run-", dir=home.root))
        self._switches = self._folder / "switches"
        self._switches.mkdir()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.site = stack.enter_context(self._site_of(self._folder))
            self._process = self._start()
            stack.callback(self._end)
            client = stack.enter_context(connect(_PROFILE, read_only=True))
            self._topology: RemoteTopology = stack.enter_context(client.topology(self._load.name, timeout_s=_ANSWER_S))
            self._wait_for_rates()
            self.observations = observe(self._topology, _FOR_EVER_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def switch(self, fault: str, details: str = "") -> None:
        """Switch a fault of the author's code on; at the next look it is there."""
        new = self._switches / f".{fault}"
        new.write_text(details, encoding="utf-8")
        new.rename(self._switches / fault)

    def switch_off(self, fault: str) -> None:
        """Switch it off again."""
        (self._switches / fault).unlink(missing_ok=True)

    def configure(self, value: str) -> None:
        """Change the configuration, as ``heron update --runtime-config`` does.

        Raises:
            TruthError: when the command fails.
        """
        heron = str(Path(sys.executable).with_name("heron"))
        words = [heron, "update", self._load.name, "--profile", _PROFILE, "--runtime-config", value]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            msg = f"{' '.join(words[1:])}: {done.stderr.strip()}"
            raise TruthError(msg)

    def status(self) -> TopologyStatus:
        """Return the present status."""
        return self._topology.status()

    def tasks(self, component: str) -> list[int]:
        """Return the ids of a component's tasks, ascending."""
        return sorted(each.task_id for each in self.status().tasks if each.component == component)

    def pid(self, *, task_id: int = 0, container_id: int = 0, process: str = "") -> int:
        """Return the process id of a task, or of a process of the engine in a container."""
        for each in self.status().processes:
            of_engine = each.container_id == container_id and each.process.split("-")[0] == process
            if each.pid and (each.task_id == task_id if task_id else of_engine):
                return each.pid
        msg = f"no process of task {task_id} or of {process} in container {container_id} runs"
        raise TruthError(msg)

    def pids_of(self, container_id: int) -> list[int]:
        """Return the process ids of a container, without its executor."""
        return [each.pid for each in self.status().processes if each.container_id == container_id and each.pid]

    def _start(self) -> subprocess.Popen[bytes]:
        profiles = Path(os.environ["HOME"], ".heron", "profiles")
        profiles.mkdir(parents=True, exist_ok=True)
        (profiles / f"{_PROFILE}.yaml").write_text(json.dumps(self.site.profile()), encoding="utf-8")
        heron = str(Path(sys.executable).with_name("heron"))
        words = [heron, "run", str(_TOPOLOGIES / self._load.file), "--profile", _PROFILE, "--"]
        with (self._folder / "output").open("wb") as output:
            return subprocess.Popen(
                [*words, "--folder", str(self._switches), *self._load.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def _wait_for_rates(self) -> None:
        deadline_s, pause = monotonic_s() + _START_S, threading.Event()
        while self._process.poll() is None and monotonic_s() < deadline_s:
            with contextlib.suppress(HeronError):  # it does not exist yet, or does not answer yet
                if _reports(next(observe(self._topology, _FOR_EVER_S))):
                    return
            pause.wait(_POLL_S)
        said = (self._folder / "output").read_text(encoding="utf-8", errors="replace")[-1000:]
        msg = f"topology {self._load.name!r} does not report rates within {_START_S:g} s: {said}"
        raise TruthError(msg)

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GONE_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _reports(observation: Observation) -> bool:
    """Whether every task of the plan has reported where its time goes."""
    tasks = {task for each in observation.shape.components for task in each.tasks}
    measured = {each.task_id for each in observation.samples if each.name == _USES and each.rate_per_s is not None}
    return bool(tasks) and tasks <= measured

"""A topology that `heron submit` has started under a profile."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.engine import Engine
from bench.job import Job
from bench.processes import ProcessUse, processes_of_home
from bench.records import BenchError, Records
from bench.trial import STOP_FILE, TOPOLOGIES
from heron.clock import monotonic_s

__all__ = ["Submission"]

_COMMAND_S = 120.0
_END_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.02
_LIST_EVERY_S = 0.5


class Submission:
    """A context manager that submits the topology at its start, and kills it at its end if it still runs.

    `began_s` is the time of the command.
    """

    def __init__(self, home: Path, profile: str, job: Job, engine: Engine) -> None:
        """`profile` is one of the profiles in the home folder."""
        self._home = home
        self._profile = profile
        self._job = job
        self._engine = engine
        self._over = False
        self._pause = threading.Event()

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="records-", dir=self._home))
        self.records = Records(self._folder)
        file = str(TOPOLOGIES / f"{self._job.topology}.py")
        own = ("--", "--folder", str(self._folder), *self._job.arguments)
        self.name = self._job.builder("unused").definition().name
        self.began_s = monotonic_s()
        try:
            self._heron("submit", self._profile, file, *self._engine.options(), *own)
        except BenchError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over:
            self._run("kill", self.name, "--profile", self._profile)
        shutil.rmtree(self._folder, ignore_errors=True)

    def processes(self) -> list[ProcessUse]:
        """Return what all its processes have used so far, including those that Spark started for it."""
        return processes_of_home(self._home)

    def logs(self) -> Path:
        """Return the newest log folder of this topology."""
        return max((self._home / ".heron" / "logs").glob(f"{self.name}*"), key=lambda path: path.stat().st_mtime)

    def wait(self, seconds: float) -> float:
        """Wait `seconds` while the topology runs, and return the time."""
        until_s = monotonic_s() + seconds
        return self.wait_until(lambda now_s: now_s >= until_s, seconds + 1)

    def wait_until(self, holds: Callable[[float], bool], within_s: float, every_s: float = _LOOK_EVERY_S) -> float:
        """Wait until ``holds(monotonic seconds)``, and return the time.

        Raises:
            BenchError: when that takes longer than `within_s`.
        """
        deadline_s = monotonic_s() + within_s
        while not holds(now_s := monotonic_s()):
            if now_s > deadline_s:
                msg = f"{self.name} under {self._profile} did not reach the expected state within {within_s:g} s"
                raise BenchError(msg)
            self._pause.wait(every_s)
        return now_s

    def wait_for_note(self, component: str, tasks: int, after_s: float, within_s: float = _END_WITHIN_S) -> float:
        """Wait until every task of a component has recorded a count after that time; return the last record's time."""
        self.wait_until(lambda _: self.records.last_note_s(component, tasks) >= after_s, within_s)
        return self.records.last_note_s(component, tasks)

    def end(self) -> int:
        """Stop the spouts, wait for the end, compare the received words with the sent ones, and return their number.

        Raises:
            BenchError: when the topology does not end, or a count differs.
        """
        (self._folder / STOP_FILE).touch()
        self.wait_until(lambda _: "finished" in self._heron("list", self._profile), _END_WITHIN_S, _LIST_EVERY_S)
        self._over = True
        return self._job.compare(self.records)

    def _heron(self, *words: str) -> str:
        ran = self._run(*words)
        if ran.returncode != 0:
            msg = f"`heron {' '.join(words[:2])}` failed: {ran.stderr.strip()[-2000:]}"
            raise BenchError(msg)
        return ran.stdout

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("heron")), *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self._home,
            env=self._engine.environment(self._home),
            timeout=_COMMAND_S,
            check=False,
        )

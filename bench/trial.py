"""One run of a bench topology with real processes and its own home, state and logs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from bench.engine import Engine
from bench.processes import ProcessUse, processes_of
from bench.records import BenchError, Records

__all__ = ["TOPOLOGIES", "Trial"]

T = TypeVar("T")

TOPOLOGIES = Path(__file__).resolve().parent / "topology-files"
STOP_FILE = "stop"

_TIMEOUT_S = 120
_END_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.02


class Trial:
    """A context manager that starts the run, and ends it whatever happened."""

    def __init__(self, topology: str, *arguments: str, engine: Engine, timeout_s: int = _TIMEOUT_S) -> None:
        self._topology = topology
        self._arguments = arguments
        self._engine = engine
        self._timeout_s = timeout_s
        self._pause = threading.Event()

    def __enter__(self) -> Trial:
        self._folder = Path(tempfile.mkdtemp(prefix="hb-"))
        records = self._folder / "records"
        records.mkdir()
        self.records = Records(records)
        self._output = self._folder / "output"
        command = [
            *(self._engine.command, "run", str(TOPOLOGIES / f"{self._topology}.py")),
            *("--timeout", str(self._timeout_s), "--report", str(self._folder / "report.json")),
            *self._engine.options(),
            *("--", "--folder", str(records), *self._arguments),
        ]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._engine.environment(self._folder),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def processes(self) -> list[ProcessUse]:
        """Return what the processes of the run have used so far."""
        return processes_of(self._process.pid)

    def wait(self, seconds: float) -> float:
        """Wait `seconds` while the run continues, and return the time.

        Raises:
            BenchError: when the run ends meanwhile.
        """
        until_s = time.monotonic() + seconds
        return self.wait_until(lambda now_s: now_s >= until_s, seconds + 1)

    def wait_until(self, holds: Callable[[float], bool], within_s: float) -> float:
        """Wait until ``holds(monotonic seconds)``, and return the time.

        Raises:
            BenchError: when the run ends before, or that takes longer than `within_s`.
        """
        deadline_s = time.monotonic() + within_s
        while not holds(now_s := time.monotonic()):
            if self._process.poll() is not None:
                raise BenchError(self._failure("ended too early"))
            if now_s > deadline_s:
                raise BenchError(self._failure(f"did not reach the expected state within {within_s:g} s"))
            self._pause.wait(_LOOK_EVERY_S)
        return now_s

    def wait_for_note(self, component: str, tasks: int, after_s: float) -> None:
        """Wait until every task of a component has recorded a count after that time."""
        self.wait_until(lambda _: self.records.last_note_s(component, tasks) >= after_s, _END_WITHIN_S)

    def create_file(self, name: str) -> None:
        """Create a file that components look for."""
        (self.records.folder / name).touch()

    def command(self, *words: str) -> str:
        """Run a command of ``heron`` on this run, to its end, and return its output.

        Raises:
            BenchError: when it fails.
        """
        done = subprocess.run(
            [self._engine.command, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            env=self._engine.environment(self._folder),
        )
        if done.returncode:
            raise BenchError(self._failure(f"heron {' '.join(words)}: {done.stderr.strip()}"))
        return done.stdout

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command of ``heron`` beside this run until the block ends; its output is text."""
        process = subprocess.Popen(
            [self._engine.command, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env=self._engine.environment(self._folder),
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()

    def metric_files(self) -> list[Path]:
        """Return the metrics files of the engine: JSON lines, one file for each container."""
        return sorted(self._folder.glob(".heron/logs/**/metrics-*.jsonl"))

    def end(self) -> dict[str, Any]:
        """Stop the spouts, wait for the end of the run, and return the report on its components.

        Raises:
            BenchError: when the run does not finish.
        """
        self.create_file(STOP_FILE)
        try:
            code = self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise BenchError(self._failure(f"did not end within {_END_WITHIN_S:g} s")) from None
        if code != 0:
            raise BenchError(self._failure(f"ended with exit code {code}"))
        self.report: dict[str, Any] = json.loads((self._folder / "report.json").read_text(encoding="utf-8"))
        components: dict[str, Any] = self.report["components"]
        return components

    def _failure(self, what: str) -> str:
        last = self._output.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
        return f"{self._topology}: {what}; its last output: {last or 'none'}"

"""A `heron` command under test: its output, its report, and the processes of its topology."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from heron_cli.foreground.run_report import RunReport
from heron_testing.sandbox_commands import SandboxProcess
from heron_testing.waiting import wait_until

__all__ = ["RUN_S", "HeronRun", "processes_of"]

RUN_S = 90.0
"""The seconds that a command may take: a run of a few seconds, on a busy machine."""

_SHOWN = 6000  # the last characters of each output stream, in the message of a failed assertion
_ROLE_MODULES = {
    "supervisor": "heron_scheduler_local.supervisor",
    "spark supervisor": "heron_scheduler_spark.supervisor",
    "pyspark worker": "pyspark.worker",
    "spark driver": "heron_scheduler_spark.spark_driver",
    "health": "heron_health_manager.manager_process",
}


@dataclass
class HeronRun:
    """A `heron` command that `heron_testing.sandbox.Sandbox` has started.

    Attributes:
        process: the process of the command.
        folder: the folder of its output and its report.
        home: the HOME of all its processes.
        out: a folder for what the topology writes; a topology of `Sandbox.programs` gets it as ``--out``.
    """

    process: SandboxProcess
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
        """The end of all its output, for the message of a failed assertion."""
        return f"--- stdout\n{self.stdout[-_SHOWN:]}\n--- stderr\n{self.stderr[-_SHOWN:]}"

    def wait(self, timeout_s: float = RUN_S) -> int:
        """Wait for the end and return the exit code.

        Raises:
            AssertionError: when the command still runs after `timeout_s` seconds.
        """
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s\n{self.all_output}") from None  # noqa: EM102

    def finished(self, timeout_s: float = RUN_S) -> RunReport:
        """Wait for the end of ``heron run`` and return its report.

        Raises:
            AssertionError: when the command still runs after `timeout_s` seconds, or the topology did not finish.
        """
        code = self.wait(timeout_s)
        assert code == 0, self.all_output
        report = self.report()
        assert report.state == "finished", self.all_output
        return report

    def report(self) -> RunReport:
        """Return the content of the ``--report`` file of ``heron run``.

        Raises:
            FileNotFoundError: when the run has not ended, or did not start a topology.
        """
        return msgspec.json.decode((self.folder / "report.json").read_bytes(), type=RunReport)

    def results(self, component: str) -> dict[int, list[list[object]]]:
        """Return the rows that the tasks of a component have written to ``COMPONENT-TASK.json`` in `out`, by task."""
        found: dict[int, list[list[object]]] = {}
        for path in sorted(self.out.glob(f"{component}-*.json")):
            found[int(path.stem.rpartition("-")[2])] = json.loads(path.read_bytes())
        return found

    def until(self, predicate: Callable[[], object], what: str, timeout_s: float = 90.0) -> None:
        """Wait until `predicate` returns a true value.

        Raises:
            AssertionError: when the command ends before it, or after `timeout_s` seconds; it has the output.
        """

        def look() -> bool:
            if predicate():
                return True
            assert self.process.poll() is None, f"{what}: the command has ended\n{self.all_output}"
            return False

        try:
            wait_until(look, timeout_s, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.all_output}") from None  # noqa: EM102

    def grows(self, read: Callable[[], float], what: str, by: float = 0, timeout_s: float = 90.0) -> None:
        """Wait until `read` returns more than its present value and `by`.

        Raises:
            AssertionError: as `until`.
        """
        before = read()
        self.until(lambda: read() > before + by, what, timeout_s)

    def printed(self, text: str, timeout_s: float = 90.0) -> None:
        """Wait until either output stream contains the text.

        Raises:
            AssertionError: as `until`.
        """
        self.until(lambda: text in self.stdout or text in self.stderr, f"{text!r} in the output", timeout_s)

    def processes(self, role: str, name: str = "") -> list[psutil.Process]:
        """Return the running processes of a role.

        Args:
            role: ``supervisor``, ``executor``, ``tmanager``, ``stmgr``, ``instance`` or ``metricsmgr``.
            name: a part of ``/FOLDER/FILE`` of the spec file, which is the last argument of a process: of an instance
                ``COMPONENT-TASK``, of an executor ``/cCONTAINER.json``.
        """
        return [process for process, _ in self.commands(role, name)]

    def commands(self, role: str, name: str = "") -> list[tuple[psutil.Process, list[str]]]:
        """Return the same processes with their command lines at that moment; any of them may end at any time."""
        module = _ROLE_MODULES.get(role, f"heron.{role}.main")
        found = []
        for process in processes_of(self.home):
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                # The folders above have random names, which may contain any text.
                if module in command and name in "/".join(["", *Path(command[-1]).parts[-2:]]):
                    found.append((process, command))
        return found

    def the(self, role: str, name: str = "") -> psutil.Process:
        """Wait until exactly one process has this role and name, and return it.

        Raises:
            AssertionError: as `until`.
        """
        found: list[psutil.Process] = []

        def one() -> bool:
            found[:] = self.processes(role, name)
            return len(found) == 1

        self.until(one, f"one {role} {name}")
        return found[0]


def processes_of(home: Path) -> list[psutil.Process]:
    """Return every process with this HOME except zombies: commands, their children and their children."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found

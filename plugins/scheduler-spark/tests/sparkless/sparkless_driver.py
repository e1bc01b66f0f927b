"""The Spark driver with processes of this machine as tasks, for tests that need no Spark.

Files in the folder HERON_TEST_FOLDER control it. While ``jvm-hangs`` exists, the JVM hangs. While ``forgets`` exists,
Spark forgets executors and repeated requests; it then writes ``forgotten`` and ``asked``.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from heron_scheduler_spark.application.application import Application
from heron_scheduler_spark.application.spark_jobs import JobOver
from heron_scheduler_spark.settings.container_request import ContainerRequest
from heron_scheduler_spark.spark_driver import main

_TASK = """\
import sys
from heron.driver_kit.parent_process import bind_to_parent
from heron_scheduler_spark.worker.container_task import run_container
bind_to_parent()
print("task:", *run_container([sys.argv[1]]))
"""
_HANGS = Path(os.environ["HERON_TEST_FOLDER"], "jvm-hangs")
_FORGETS = Path(os.environ["HERON_TEST_FOLDER"], "forgets")


class ProcessJobs:
    """An application whose jobs are processes; they outlive the driver, as on a machine that lost the network."""

    def __init__(
        self, _master: str, _python: str, _settings: Mapping[str, str], _scratch: Path, wake: Callable[[], None]
    ) -> None:
        self._wake = wake
        self._tasks: dict[str, subprocess.Popen[str]] = {}
        self._forgotten: list[tuple[str, str]] = []
        self.ended: queue.SimpleQueue[JobOver] = queue.SimpleQueue()
        self.id = f"without-spark-{os.getpid()}"
        self.page = ""

    def run(self, ticket: str, order: str, _title: str, _request: ContainerRequest | None) -> None:
        if _FORGETS.exists():
            self._forgotten.append((ticket, order))
            _FORGETS.with_name("forgotten").touch()
        else:
            self._start(ticket, order)

    def _start(self, ticket: str, order: str) -> None:
        command = [sys.executable, "-P", "-c", _TASK, order]
        task = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self._tasks[ticket] = task
        threading.Thread(target=self._wait, args=(ticket, task), daemon=True).start()

    def cancel(self, ticket: str) -> None:
        if task := self._tasks.get(ticket):
            task.kill()

    def executor_of(self, ticket: str) -> str:
        return str(self._tasks[ticket].pid)

    def is_leaving(self, _executor: str) -> bool:
        return False

    def ask_again(self) -> None:
        if self._forgotten and _FORGETS.exists():
            _FORGETS.with_name("asked").touch()
            return
        while self._forgotten:
            self._start(*self._forgotten.pop())

    def is_stopped(self) -> bool:
        pause = threading.Event()
        while _HANGS.exists():
            pause.wait(0.05)
        return False

    def stop(self) -> None:
        for task in self._tasks.values():
            task.kill()

    def _wait(self, ticket: str, task: subprocess.Popen[str]) -> None:
        output, _ = task.communicate()
        lines = [line.removeprefix("task:").strip() for line in output.splitlines() if line.startswith("task:")]
        self.ended.put(JobOver(ticket, lines[-1] if lines else "its task was killed"))
        self._wake()


if __name__ == "__main__":
    sys.exit(main(cast("Callable[..., Application]", ProcessJobs)))

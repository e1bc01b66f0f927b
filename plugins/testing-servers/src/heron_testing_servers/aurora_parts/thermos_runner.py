"""The executor of Aurora's test server: ``python thermos_runner.py FILE``, the command of a task.

FILE has the job or the task of Thermos in JSON, and the values of its variables. Each process of the task is a shell
command; its output is in ``.logs/PROCESS/RUN/stdout`` and ``stderr``. SIGTERM comes to all processes of the group: the
runner starts nothing more, and ends when they have ended. Only the standard library, because each task starts it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

Json = dict[str, Any]

LOGS = ".logs"
"""The folder of the outputs. It is there when a process has started."""

_VARIABLE = re.compile(r"\{\{([^{}]+)\}\}")


class Runner:
    """One task, from its first process to the end of the last one."""

    def __init__(self, task: Json) -> None:
        self._processes: dict[str, Json] = {each["name"]: each for each in task["processes"]}
        orders = [each["order"] for each in task.get("constraints") or () if each.get("order")]
        self._before = {
            name: {before for order in orders if name in order for before in order[: order.index(name)]}
            for name in self._processes
        }
        self._failures_allowed = int(task.get("max_failures", 1))
        self._finished: set[str] = set()
        self._failed: set[str] = set()
        self._started: set[str] = set()
        self._changed = threading.Condition()
        self.stopped = threading.Event()

    def run(self) -> int:
        """Run all processes; return the exit code."""
        regular = {name for name, each in self._processes.items() if not each.get("final")}
        code = self._run(regular)
        self._run(set(self._processes) - regular)
        return code

    def _run(self, names: set[str]) -> int:
        if not names:
            return 0
        needed = {name for name in names if not self._processes[name].get("ephemeral")}
        with self._changed:
            while not needed <= self._finished:
                if self._failures_allowed and len(self._failed & needed) >= self._failures_allowed:
                    return 1
                if not self.stopped.is_set():
                    for name in names - self._started:
                        if self._before[name] <= self._finished:
                            self._started.add(name)
                            threading.Thread(target=self._follow, args=(name,), daemon=True).start()
                elif not self._started - self._finished - self._failed:
                    return 1
                self._changed.wait()
        return 0

    def _follow(self, name: str) -> None:
        """Run a process until it has succeeded, or failed often enough."""
        process = self._processes[name]
        allowed = int(process.get("max_failures", 1))
        run, failures, success = 0, 0, False
        while not self.stopped.is_set():
            folder = Path(LOGS, name, str(run))
            folder.mkdir(parents=True)
            with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
                code = subprocess.call(["/bin/bash", "-c", process["cmdline"]], stdout=stdout, stderr=stderr)
            run, success = run + 1, code == 0
            failures += not success
            if (success and not process.get("daemon")) or (allowed and failures >= allowed):
                break
            self.stopped.wait(float(process.get("min_duration", 5)))
        with self._changed:
            (self._finished if success else self._failed).add(name)
            self._changed.notify_all()

    def stop(self) -> None:
        """Start nothing more."""
        self.stopped.set()
        with self._changed:
            self._changed.notify_all()


def filled(value: Any, variables: dict[str, str]) -> Any:  # noqa: ANN401 - JSON of any shape
    """Replace the variables in all texts; an unknown one stays."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    if isinstance(value, dict):
        return {name: filled(each, variables) for name, each in value.items()}
    return value


def main() -> int:
    """Run the task of the file, and return the exit code."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    data = filled(given["data"], given["variables"])
    runner = Runner(data.get("task", data))
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=runner.stop).start())
    return runner.run()


if __name__ == "__main__":
    sys.exit(main())

"""A launcher whose loop hangs when its executor runs: ``python hanging_launcher.py FOLDER``."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from heron.driver_kit.signals import Signals
from heron_scheduler_kit.managed.container_records import ContainerRecords
from heron_scheduler_kit.managed.launch_file import LaunchFile
from heron_scheduler_kit.managed.launcher import Launcher
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.contracts.scheduler import FAKE_EXECUTOR
from heron_testing.fake_executor import alive

_HANG_S = 1.0


class Hanging(Signals):
    notes: Path

    def read(self) -> tuple[signal.Signals, ...]:
        found = super().read()
        if alive(self.notes, 1) is not None:
            threading.Event().wait()
        return found


def main(folder: Path) -> None:
    statemgr = LocalFsStateManager.open({"root": str(folder / "state")})
    ContainerRecords(statemgr, "t-1").add("t", [1])
    of_run = {"topology": "t", "topology_id": "t-1", "container_id": 1, "package_uri": "none", "sinks": []}
    folders = {"run_dir": str(folder / "run"), "log_dir": str(folder / "logs")}
    spec: dict[str, object] = {**of_run, **folders, "settings": {"notes": str(folder)}}
    signals = Hanging((signal.SIGTERM, signal.SIGCHLD))
    signals.notes = folder
    Launcher(LaunchFile(spec, tuple(FAKE_EXECUTOR), backoff_s=0.0), statemgr, signals, hang_s=_HANG_S).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""An executor that starts no processes of a topology; scheduler tests run it in place of the real one.

``python -m heron_testing.fake_executor SPECFILE`` writes the note ``c<N>.alive`` and removes it when it ends in order.
The folder of the note is the setting ``notes`` of the spec, else the log directory. The setting ``fake`` is the task:

- ``serve``, the default: runs until SIGTERM or SIGUSR1, then ends with code 0;
- ``done``: ends with code 0 at once;
- ``crash``: writes a reason and ends with code 3;
- ``deaf``: ignores SIGTERM;
- ``parent``: serves, with a child process that ignores SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.parent_process import bind_to_parent

__all__ = ["Alive", "alive"]


@dataclass(frozen=True, slots=True)
class Alive:
    """The note of a fake executor; `child` is a process id, or 0 without a child. The modes are permission bits."""

    pid: int
    attempt: int
    spec_file: Path
    spec_mode: int
    run_dir_mode: int
    child: int


def alive(notes: Path, container_id: int) -> Alive | None:
    """Return the note of the executor that last started as this container, or None.

    The result is None if that executor ended in order, or if no executor started.
    """
    try:
        fields = json.loads((notes / f"c{container_id}.alive").read_bytes())
    except (OSError, ValueError):
        return None
    return Alive(**{**fields, "spec_file": Path(fields["spec_file"])})


def _main(spec_file: str) -> int:
    bind_to_parent()
    spec = json.loads(Path(spec_file).read_bytes())
    task = spec["settings"].get("fake", "serve")
    name = f"c{spec['container_id']}"
    if task == "crash":
        Path(spec["run_dir"], f"{name}.error").write_text("asked to crash\n")
        return 3
    if task == "done":
        return 0
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    child = _spawn_child() if task == "parent" else 0
    note = Path(spec["settings"].get("notes", spec["log_dir"]), f"{name}.alive")
    _write(note, spec_file, spec, child)
    signal.sigwait({signal.SIGUSR1} if task == "deaf" else {signal.SIGTERM, signal.SIGUSR1})
    note.unlink(missing_ok=True)
    return 0


def _spawn_child() -> int:
    """Start a child that inherits the blocked SIGTERM and never ends."""
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]).pid


def _write(note: Path, spec_file: str, spec: dict[str, object], child: int) -> None:
    said = {
        "pid": os.getpid(),
        "attempt": spec["attempt"],
        "spec_file": spec_file,
        "spec_mode": os.stat(spec_file).st_mode & 0o777,
        "run_dir_mode": os.stat(str(spec["run_dir"])).st_mode & 0o777,
        "child": child,
    }
    temporary = note.with_suffix(".tmp")
    temporary.write_text(json.dumps(said))
    temporary.replace(note)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))

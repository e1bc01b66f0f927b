"""``python sandbox_guard.py ROOT``: ends a sandbox with the process of its tests, whatever ends that process.

The tests hold the other end of this process's standard input. The kernel closes it when they end, also after SIGKILL.
Then the guard kills every process whose HOME is ``ROOT/home``, and removes ROOT.

Each sandbox has a guard. Therefore this file runs as a script and imports little, so that it starts in 15 ms.
"""

import os
import shutil
import signal
import sys
import threading

_ROUNDS = 100  # a process that is killed may have started another one meanwhile
_PAUSE_S = 0.05


def main() -> None:
    """Wait for the end of the tests, and clean up."""
    root = sys.argv[1]
    sys.stdin.buffer.read()
    pause = threading.Event()
    for _ in range(_ROUNDS):
        found = _processes_of(os.path.join(root, "home"))  # pathlib would double the time of the start
        if not found:
            break
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it ended meanwhile
        pause.wait(_PAUSE_S)
    shutil.rmtree(root, ignore_errors=True)


def _processes_of(home: str) -> list[int]:
    """Return the processes with this HOME; zombies have no environment."""
    wanted = f"HOME={home}".encode()
    found = []
    for name in os.listdir("/proc"):  # as above
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:  # as above
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue  # it ended meanwhile, or belongs to another user
    return found


if __name__ == "__main__":
    main()

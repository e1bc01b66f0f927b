"""The parent of one container's command: ``python -I -S container_shim.py FOLDER``.

It starts the command that `container_processes` has written to ``FOLDER/start.json``, and writes ``end.json`` when the
command and all processes below it have ended. SIGTERM orders the end: the command gets SIGTERM, and after the seconds
of the file ``grace`` everything gets SIGKILL. A server that is killed leaves its containers running, as a cluster does.
They end with the owner: the process of pytest. Only the standard library, because each container starts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_NOT_FOUND = 127  # as a shell

_monotonic_s, _wall_s = time.monotonic, time.time  # noqa: TID251 - this program loads none of our packages


class Shim:
    """One command from its start to the end of its last process."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        os.set_inheritable(start["started"], False)
        self._libc = ctypes.CDLL(None)
        self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes whose parent ends become its children
        self._ordered, self._order = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._order)
        signal.signal(signal.SIGTERM, lambda *_: None)
        self._kill_at_s: float | None = None

    def run(self) -> None:
        """Return when everything has ended."""
        owner = os.pidfd_open(self._start["owner"])
        command = self._spawn()
        _write("pid", str(command))
        os.close(self._start["started"])
        ended = os.pidfd_open(command)
        poll = select.poll()
        for each in (owner, ended, self._ordered):
            poll.register(each, select.POLLIN)
        while True:
            ready = [number for number, _ in poll.poll(self._wait_ms())]
            if ended in ready:
                break
            if self._ordered in ready:
                os.read(self._ordered, 1024)
                self._stop(command)
            if owner in ready or (self._kill_at_s is not None and _monotonic_s() >= self._kill_at_s):
                os.kill(command, signal.SIGKILL)
                os.waitid(os.P_PID, command, os.WEXITED | os.WNOWAIT)
        status = os.waitpid(command, 0)[1]
        _kill_children()
        code = os.waitstatus_to_exitcode(status)
        _write("end.json", json.dumps({"exit_code": max(code, 0), "signal": max(-code, 0), "at_s": _wall_s()}))

    def _spawn(self) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # else the child could take it as this process does
        if pid := os.fork():
            with contextlib.suppress(OSError):  # the child has done it, and is another program
                os.setpgid(pid, pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            return pid
        try:
            self._libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(self._start[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
            os.chdir(self._start["cwd"])
            os.execvpe(self._start["argv"][0], self._start["argv"], self._start["env"])  # noqa: S606 - of the test
        except OSError as error:
            os.write(2, f"cannot start {self._start['argv'][0]}: {error}\n".encode())
        finally:
            os._exit(_NOT_FOUND)

    def _stop(self, command: int) -> None:
        with open("grace", encoding="ascii") as file:
            at_s = _monotonic_s() + float(file.read())
        if self._kill_at_s is None:
            (os.killpg if self._start["stop_group"] else os.kill)(command, signal.SIGTERM)
        self._kill_at_s = at_s if self._kill_at_s is None else min(at_s, self._kill_at_s)

    def _wait_ms(self) -> float | None:
        return None if self._kill_at_s is None else max(0.0, (self._kill_at_s - _monotonic_s()) * 1000)


def _kill_children() -> None:
    while True:
        with open("/proc/thread-self/children", encoding="ascii") as file:
            for each in file.read().split():
                os.kill(int(each), signal.SIGKILL)  # not reaped yet, so the id is theirs
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _write(name: str, text: str) -> None:
    with open(f"{name}.new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(f"{name}.new", name)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    with open("start.json", encoding="utf-8") as _file:
        _start = json.load(_file)
    Shim(_start).run()

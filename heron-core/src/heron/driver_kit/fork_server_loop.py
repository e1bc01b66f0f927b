"""The process of a fork server: forks a process for each request of its owner. `fork_server` is the other side.

The server has one thread, no ZeroMQ context, and no descriptor besides its channel. Its imports are those of the roles,
so a process that it forks finds its modules loaded and is otherwise like a new interpreter.

A request forks twice. The process in between ends at once, so the kernel makes the new process a child of the owner,
which reaps it as any other child. The new process waits until the server has told its id to the owner. If the server
ends before, the new process ends too: there is never a process that the owner does not know.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heron.driver_kit.command_line import show_command_line
from heron.driver_kit.parent_process import DEATH_SIGNAL, PARENT_PID, set_parent_death_signal
from heron.errors import HeronError

__all__ = ["ANSWER_BYTES", "COMMAND", "MODULE", "ForkAnswer", "check_single_thread", "other_threads", "serve"]

COMMAND = "heron.driver_kit.fork_server_loop"
"""The module in the command line that a fork server shows."""

ANSWER_BYTES = 4096

MODULE = 3
"""The index of the module in a command line ``python -P -m MODULE ARGUMENT``."""

_REQUEST_BYTES = 1 << 16
_GO = b"g"


@dataclass(frozen=True, slots=True)
class ForkAnswer:
    """The id of the process that was forked; or 0 and the reason why none was."""

    pid: int = 0
    error: str = ""


def serve(
    channel: socket.socket, owner_pid: int, death_signal: signal.Signals, imports: Mapping[str, Sequence[str]]
) -> None:
    """Serves until the owner has closed the channel. Returns only in a process that was forked, after its end."""
    set_parent_death_signal(signal.SIGKILL, owner_pid)
    loaded: set[str] = set()
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, _REQUEST_BYTES, 1)
        if not request:
            os._exit(0)
        words = msgspec.json.decode(request, type=tuple[str, ...])
        try:
            for name in imports.get(words[MODULE], ()):
                if name not in loaded:
                    _import(name)
                    loaded.add(name)
            check_single_thread()
            child = _fork()
        except Exception as error:  # the owner starts a new interpreter, which meets the same error and reports it
            channel.send(msgspec.json.encode(ForkAnswer(0, f"{type(error).__name__}: {error}"[: ANSWER_BYTES // 8])))
            continue
        if child is None:
            channel.close()
            _become(words, descriptors[0], owner_pid, death_signal)
            runpy.run_module(words[MODULE], run_name="__main__", alter_sys=True)
            return
        os.close(descriptors[0])
        pid, go = child
        channel.send(msgspec.json.encode(ForkAnswer(pid)))
        with contextlib.suppress(BrokenPipeError):  # the new process was killed
            os.write(go, _GO)
        os.close(go)


def other_threads() -> tuple[str, ...]:
    """The names of the threads of this process besides the main thread, as Python or the system names them."""
    names = {each.native_id: each.name for each in threading.enumerate()}
    others = [int(each) for each in os.listdir("/proc/self/task") if int(each) != os.getpid()]
    return tuple(names.get(each) or _system_name(each) for each in others)


def check_single_thread() -> None:
    """Refuses to fork beside another thread: the new process would have its locks, and not the thread.

    Raises:
        HeronError: when there is another thread; names it.
    """
    if others := other_threads():
        msg = f"cannot fork beside the threads {', '.join(others)}; an import must not start a thread"
        raise HeronError(msg)


def _system_name(thread: int) -> str:
    try:
        with open(f"/proc/self/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return str(thread)


def _import(module: str) -> None:
    """Imports what a role needs, and exempts it from collections, which would write to the shared pages."""
    importlib.import_module(module)
    del sys.modules[module]  # it is run as __main__, as by a new interpreter
    gc.collect()
    gc.freeze()


def _fork() -> tuple[int, int] | None:
    """Forks a child of the owner; returns its id and the descriptor that lets it begin. None in the new process.

    Raises:
        OSError: when the system refuses.
    """
    told, tell = os.pipe()
    begin, go = os.pipe()
    between = os.fork()
    if between == 0:
        _fork_and_end(tell)
        for descriptor in (told, tell, go):
            os.close(descriptor)
        if os.read(begin, len(_GO)) != _GO:
            os._exit(1)  # the server has ended, and the owner does not know this process
        os.close(begin)
        return None
    os.close(tell)
    os.close(begin)
    os.waitpid(between, 0)  # from now on the new process is a child of the owner
    pid = int(os.read(told, 32) or b"0")
    os.close(told)
    if not pid:
        os.close(go)
        msg = "the system refuses another process"
        raise OSError(msg)
    return pid, go


def _fork_and_end(tell: int) -> None:
    """Returns only in the new process."""
    try:
        if pid := os.fork():
            os.setpgid(pid, pid)  # before the owner can signal the group
            os.write(tell, str(pid).encode())
            os._exit(0)
    except OSError:
        os._exit(1)


def _become(words: Sequence[str], output: int, owner_pid: int, death_signal: signal.Signals) -> None:
    """Gives the new process what `heron.driver_kit.child_processes.spawn` gives to a program."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(output)
    os.environ[PARENT_PID] = str(owner_pid)
    os.environ[DEATH_SIGNAL] = death_signal.name
    # CPython keeps the id of the parent's thread, which tools look up in /proc.
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
    sys.orig_argv[:] = words
    sys.argv[:] = ["", *words[MODULE + 1 :]]
    show_command_line(words)

"""What event loops, sockets and threads of a process take from the machine.

A process chooses one object when it constructs its shell. `heron_testing.seeded` gives a simulated one, so that all
roles of a topology run in one process, in an order that a seed decides. Nothing here is on the path of a tuple.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import zmq

from heron.ipc.wakeup import Wakeup

__all__ = ["REAL_MACHINE", "Machine"]

_SCHEDSTAT = "proc/thread-self/schedstat"


class Machine:
    """The machine on which the process runs."""

    root = Path("/")
    """Below it are the files of the kernel (``proc``, ``sys``)."""

    def context(self) -> zmq.Context[zmq.Socket[bytes]]:
        """A new context, which opens sockets."""
        return zmq.Context()

    def poller(self) -> zmq.Poller:
        """A new poller, which waits for sockets and file descriptors."""
        return zmq.Poller()

    def wakeup(self) -> Wakeup:
        """A new wake-up for a thread that sleeps in its poller."""
        return Wakeup()

    def lock(self) -> threading.Lock:
        """A new lock on which a thread can sleep."""
        return threading.Lock()

    def pid(self) -> int:
        """The id of the process."""
        return os.getpid()

    def awake_s(self) -> float | None:
        """Seconds that the calling thread has run or was ready to run so far; None if the kernel does not tell."""
        try:
            ran, waited, _ = Path(self.root, _SCHEDSTAT).read_bytes().split()
        except (OSError, ValueError):
            return None
        return (int(ran) + int(waited)) / 1e9

    def start_thread(self, name: str, run: Callable[[], object]) -> None:
        """Starts a daemon thread that calls `run` once."""
        _EngineThread(target=run, name=name, daemon=True).start()

    def has_foreign_threads(self) -> bool:
        """Whether the process has threads of an author: besides its main one, those of machines and that of pyzmq."""
        main = threading.main_thread()
        return any(each is not main and not _is_own(each) for each in threading.enumerate())

    def worker(self, name: str) -> Callable[[Callable[[], object]], None]:
        """Starts a daemon thread; the function that is returned has it make one call after the other."""
        calls: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.start_thread(name, lambda: _make_calls(calls))
        return calls.put


class _EngineThread(threading.Thread):
    """A thread that a machine has started."""


def _is_own(thread: threading.Thread) -> bool:
    return isinstance(thread, _EngineThread) or type(thread).__module__.startswith("zmq.")


def _make_calls(calls: queue.SimpleQueue[Callable[[], object]]) -> None:
    while True:
        calls.get()()


REAL_MACHINE = Machine()

"""The event queue of a simulation: it has the only clock, the only source of chance, and the order of everything.

Each thread of each simulated process is a greenlet. It runs until it waits; then the next event runs. An event is a
call at a time: a message arrives, a wait is over, a fault begins. Events at one time run in the order of their making.
Each reading of the clock takes half a microsecond, so that code that waits by reading the clock gets on.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Protocol

from greenlet import getcurrent, greenlet

__all__ = ["READING_NS", "STARTED_AT_NS", "Fiber", "Host", "Process", "ProcessKilled", "World"]

SECOND = 1_000_000_000
READING_NS = 500
STARTED_AT_NS = 1_000 * SECOND
_HASHED_TOGETHER = 1000  # lines
_EPOCH_NS = 1_700_000_000 * SECOND


class ProcessKilled(BaseException):
    """Ends a thread of a process that was killed, at the place where it waits."""


class Host(Protocol):
    """A machine: its name, and how far its wall clock is off."""

    name: str
    wall_offset_ns: int


class Process(Protocol):
    """A process, as its threads and sockets see it: `heron_testing.seeded.process.SimulatedProcess`."""

    name: str
    killed: bool
    stopped: bool
    held: deque[Callable[[], object]]

    @property
    def machine(self) -> Host:
        """Where it runs."""
        ...

    def deliver(self, call: Callable[[], object]) -> None:
        """Makes a call on a thread of a library."""
        ...


class World:
    """One run. `draw` is the source of chance for everything that is not drawn before the run."""

    present: ClassVar[World]
    """The world whose clock this interpreter reads; one simulation runs at a time."""

    def __init__(self, seed: int, *, keeps_trace: bool = False) -> None:
        self.draw = random.Random(seed)
        self.now_ns = 0
        self.current: Fiber | None = None
        self.events = 0
        self.is_over = False
        self.trace: list[str] = []
        self.on_enter: Callable[[Process], None] | None = None
        """Called with the process of each thread that goes on."""
        self.ran: dict[Process, None] = {}
        """The processes that have run since somebody cleared it: nothing has changed in the others."""
        self.on_run: Callable[[], object] = lambda: None
        """Called with the first of these."""
        self._keeps_trace = keeps_trace
        self._hash = hashlib.sha256()
        self._unhashed: list[str] = []
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self.hub = getcurrent()

    @property
    def process(self) -> Process | None:
        """The process whose thread runs now."""
        return self.current.process if self.current is not None else None

    def read_monotonic_ns(self) -> int:
        """The monotonic clock, which all machines share."""
        self.now_ns += READING_NS
        return STARTED_AT_NS + self.now_ns

    def read_wall_ns(self) -> int:
        """The wall clock of the machine of the present process."""
        self.now_ns += READING_NS
        process = self.process
        return _EPOCH_NS + self.now_ns + (process.machine.wall_offset_ns if process is not None else 0)

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self.now_ns / SECOND

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Makes a call later."""
        self.at(self.now_ns + int(delay_s * SECOND), call)

    def at(self, at_ns: int, call: Callable[[], object]) -> None:
        """Makes a call at a time."""
        heapq.heappush(self._queue, (at_ns, next(self._order), call))

    def run(self, until_s: float) -> None:
        """Runs events until `is_over` is set, at most until a time."""
        queue, until_ns, pop = self._queue, int(until_s * SECOND), heapq.heappop
        while queue and not self.is_over and queue[0][0] <= until_ns:
            at_ns, _, call = pop(queue)
            self.now_ns = max(self.now_ns, at_ns)
            self.events += 1
            call()

    def note(self, what: str) -> None:
        """Adds a line to the trace, whose hash identifies the run."""
        self._unhashed.append(f"{self.now_ns} {what}\n")
        if len(self._unhashed) == _HASHED_TOGETHER:
            self._update_hash()
        if self._keeps_trace:
            self.trace.append(f"{self.now_ns / SECOND:.6f} {what}")

    def remark(self, what: str) -> None:
        """Adds a line to the trace that its hash leaves out: it may name what differs between machines."""
        if self._keeps_trace:
            self.trace.append(f"{self.now_ns / SECOND:.6f} {what}")

    @property
    def trace_hash(self) -> str:
        """The hash of all lines so far, in hexadecimal."""
        self._update_hash()
        return self._hash.hexdigest()[:16]

    def _update_hash(self) -> None:
        self._hash.update("".join(self._unhashed).encode())
        self._unhashed.clear()


class Fiber:
    """A thread of a process."""

    def __init__(self, world: World, process: Process, name: str, run: Callable[[], object]) -> None:
        self.world = world
        self.process = process
        self.name = name
        self._run = run
        self._waits = 0  # the number of the present wait; 0 while it runs or after its end
        self._last = 0  # the number of the last wait
        self._greenlet = greenlet(self._main, parent=world.hub)
        self.ended = False

    def start(self, delay_s: float) -> None:
        """Begins to run after a time."""
        self._waits = self._last = number = self._last + 1
        self.world.after(delay_s, partial(self._resume, number))

    def wait(self, until_ns: int | None) -> None:
        """Own thread: waits for `wake`, or until a time.

        Raises:
            ProcessKilled: when the process is killed.
        """
        process, world = self.process, self.world
        if process.killed:
            raise ProcessKilled
        self._waits = self._last = number = self._last + 1
        if until_ns is not None:
            world.at(until_ns, partial(self._resume, number))
        world.current = None
        world.hub.switch()
        if process.killed:
            raise ProcessKilled

    def sleep(self, seconds: float) -> None:
        """Own thread: waits for a time."""
        until_ns = self.world.now_ns + int(seconds * SECOND)
        while self.world.now_ns < until_ns:
            self.wait(until_ns)

    def wake(self) -> None:
        """Ends its wait soon: a thread that can run waits for a processor."""
        number = self._waits
        if number:
            chance = self.world.draw.random
            delay_s = 5e-6 + 55e-6 * chance() if chance() < 0.98 else 1e-4 + 8e-3 * chance()
            self.world.after(delay_s, partial(self._resume, number))

    def unwind(self) -> None:
        """Ends the thread of a killed process, if it has begun."""
        self._waits = 0
        if not self.ended and self._greenlet:
            self._greenlet.parent = getcurrent()  # a process may kill another one
            before = self.world.current
            self._enter()
            self.world.current = before
        self.ended = True

    def _resume(self, number: int) -> None:
        if number != self._waits or self.ended:
            return
        if self.process.stopped:
            self.process.held.append(partial(self._resume, number))
            return
        self._waits = 0
        self._enter()

    def _enter(self) -> None:
        world = self.world
        if not world.ran:
            world.on_run()
        world.current, world.ran[self.process] = self, None
        if world.on_enter is not None:
            world.on_enter(self.process)
        try:
            self._greenlet.switch()
        finally:
            world.current = None

    def _main(self) -> None:
        try:
            self._run()
        except ProcessKilled:
            pass
        finally:
            self.ended = True

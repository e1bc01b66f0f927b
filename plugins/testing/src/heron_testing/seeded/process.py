"""A simulated process and what it takes from its machine."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import zmq  # noqa: TID251 - it simulates ZeroMQ

from heron.driver_kit.signals import Signals
from heron.ipc.machine import Machine
from heron.ipc.wakeup import Wakeup
from heron_testing.seeded.network import Network
from heron_testing.seeded.sockets import SimulatedContext
from heron_testing.seeded.world import Fiber, World

__all__ = ["Descriptor", "SimulatedHost", "SimulatedMachine", "SimulatedProcess", "SimulatedSignals"]

_FIRST_FD = 1_000_000  # no real descriptor has such a number
_POLLIN = int(zmq.POLLIN)
_FIRST_PID = 1_000_000_000  # above the largest process id of Linux, so no signal to it reaches a process


class SimulatedHost:
    """The machine of one container."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.wall_offset_ns = 0


class Descriptor:
    """A file descriptor that a poller can wait for."""

    def __init__(self) -> None:
        self.poller: SimulatedPoller | None = None
        self.is_readable = False

    def set(self) -> None:
        """Makes it readable."""
        self.is_readable = True
        if self.poller is not None:
            self.poller.notify(self)

    def readable(self) -> bool:
        """Whether it is readable."""
        return self.is_readable


class SimulatedProcess:
    """A process: its threads, its descriptors and its sockets. The calls `at_end` are made when it has ended."""

    def __init__(self, world: World, network: Network, machine: SimulatedHost, name: str, number: int) -> None:
        self.world = world
        self.network = network
        self.machine = machine
        self.name = name
        self.pid = _FIRST_PID + number
        self.killed = False
        self.stopped = False
        self.exit_code: int | None = None
        self.at_end: list[Callable[[], None]] = []
        self.held: deque[Callable[[], object]] = deque()
        self.descriptors: dict[int, Descriptor] = {}
        self.contexts: list[SimulatedContext] = []
        self._fds = itertools.count(_FIRST_FD)
        self._fibers: list[Fiber] = []
        self.signals = SimulatedSignals(self)

    def descriptor(self) -> tuple[int, Descriptor]:
        """A new descriptor and its number."""
        fd, descriptor = next(self._fds), Descriptor()
        self.descriptors[fd] = descriptor
        return fd, descriptor

    def start(self, name: str, run: Callable[[], object], delay_s: float = 0.0) -> None:
        """Starts a thread."""
        fiber = Fiber(self.world, self, name, run)
        self._fibers = [*(each for each in self._fibers if not each.ended), fiber]
        fiber.start(delay_s)

    def run_main(self, main: Callable[[], int], delay_s: float) -> None:
        """Starts the main thread, with whose return the process ends."""
        self.start("main", lambda: self._exit_after(main), delay_s)

    def _exit_after(self, main: Callable[[], int]) -> None:
        code = main()
        if not self.killed:
            self._end(code, abrupt=False)

    def kill(self, code: int = -signal.SIGKILL) -> None:
        """Ends it at the place where each of its threads waits."""
        if self.exit_code is None:
            self._end(code, abrupt=True)

    def _end(self, code: int, *, abrupt: bool) -> None:
        self.killed, self.exit_code = True, code
        self.world.note(f"{self.name} ends: {code}")
        for context in self.contexts:
            context.process_ended(abrupt=abrupt)
        for fiber in self._fibers:
            if fiber is not self.world.current:
                fiber.unwind()
        self.held.clear()
        for call in self.at_end:
            call()

    def stop(self) -> None:
        """Stops all of its threads, as SIGSTOP does."""
        self.stopped = True
        self.world.note(f"{self.name} is stopped")

    def resume(self) -> None:
        """Lets it run again, as SIGCONT does."""
        self.stopped = False
        self.world.note(f"{self.name} runs again")
        held, self.held = self.held, deque()
        for call in held:
            self.world.after(0.0, call)

    def deliver(self, call: Callable[[], object]) -> None:
        """Makes a call on a thread of a library: now, later while the process is stopped, never after its end."""
        if self.killed:
            return
        if self.stopped:
            self.held.append(lambda: self.deliver(call))
        else:
            call()


class SimulatedPoller(zmq.Poller):
    """Waits for sockets and descriptors of the simulation; real descriptors are never readable."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._sources: dict[object, object] = {}
        self._keys: dict[object, object] = {}
        self._sleeper: Fiber | None = None
        self._told: dict[object, None] = {}  # the sources that may be readable

    def __contains__(self, source: object) -> bool:
        return source in self._sources

    def register(self, source: object, flags: int = zmq.POLLIN) -> None:
        """`zmq.Poller.register`."""
        found = self._process.descriptors.get(source) if isinstance(source, int) else source
        if found is not None:
            found.poller = self  # type: ignore[attr-defined]
            self._sources[source] = found
            self._keys[found] = source
            self._told[found] = None

    def unregister(self, source: object) -> None:
        """`zmq.Poller.unregister`."""
        found = self._sources.pop(source, None)
        if found is not None:
            found.poller = None  # type: ignore[attr-defined]
            del self._keys[found]
            self._told.pop(found, None)

    def poll(self, timeout: int | None = None) -> list[tuple[object, int]]:
        """`zmq.Poller.poll`; the time is in milliseconds."""
        ready = self._ready()
        world = self._process.world
        if ready or timeout == 0:
            return ready
        fiber = world.current
        assert fiber is not None
        until_ns = None if timeout is None else world.now_ns + timeout * 1_000_000
        self._sleeper = fiber
        fiber.wait(until_ns)
        self._sleeper = None
        return self._ready()

    def notify(self, source: object) -> None:
        """A source has become readable."""
        self._told[source] = None
        if self._sleeper is not None:
            self._sleeper.wake()

    def _ready(self) -> list[tuple[object, int]]:
        told = self._told
        if not told:
            return []
        if quiet := [each for each in told if not each.readable()]:  # type: ignore[attr-defined]
            for each in quiet:
                del told[each]
        return [(self._keys[each], _POLLIN) for each in told]


class _SimulatedWakeup(Wakeup):
    __slots__ = ("_descriptor", "_process")

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self.fd, self._descriptor = process.descriptor()
        self.asleep = False

    def wake(self) -> None:
        if self.asleep:
            self.asleep = False
            self._descriptor.set()

    def drain(self) -> None:
        self.asleep = False
        self._descriptor.is_readable = False

    def close(self) -> None:
        self._process.descriptors.pop(self.fd, None)


class _SimulatedLock:
    """A lock on which one thread sleeps at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._locked = False
        self._sleeper: Fiber | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        world, until_ns = self._world, None
        if timeout >= 0:
            until_ns = world.now_ns + int(timeout * 1e9)
        while self._locked:
            if not blocking or (until_ns is not None and world.now_ns >= until_ns):
                return False
            assert world.current is not None
            self._sleeper = world.current
            world.current.wait(until_ns)
            self._sleeper = None
        self._locked = True
        return True

    def release(self) -> None:
        if not self._locked:
            message = "release unlocked lock"
            raise RuntimeError(message)
        self._locked = False
        if self._sleeper is not None:
            self._sleeper.wake()


class SimulatedMachine(Machine):
    """What one process takes from its machine, whose kernel counts nothing: a run depends on no real load."""

    root = Path(os.devnull)

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process

    def context(self) -> zmq.Context[zmq.Socket[bytes]]:
        """A context of the simulated network."""
        context = SimulatedContext(self._process, self._process.network)
        self._process.contexts.append(context)
        return cast("zmq.Context[zmq.Socket[bytes]]", context)

    def poller(self) -> zmq.Poller:
        """A poller of the simulated network."""
        return SimulatedPoller(self._process)

    def wakeup(self) -> Wakeup:
        """A wake-up without a real descriptor."""
        return _SimulatedWakeup(self._process)

    def lock(self) -> threading.Lock:
        """A lock whose sleeper is a greenlet."""
        return cast("threading.Lock", _SimulatedLock(self._process.world))

    def pid(self) -> int:
        """The id of the simulated process; a fork of the simulation has another one than its start."""
        return self._process.pid

    def has_foreign_threads(self) -> bool:
        """None: those of the real process say nothing about the simulated one."""
        return False

    def start_thread(self, name: str, run: Callable[[], object]) -> None:
        """Starts a greenlet."""
        self._process.start(name, run, self._process.world.draw.uniform(1e-5, 1e-3))

    def worker(self, name: str) -> Callable[[Callable[[], object]], None]:
        """A thread of its own for each row of calls."""
        calls: deque[Callable[[], object]] = deque()
        running = False

        def work() -> None:
            nonlocal running
            while calls:
                calls.popleft()()
            running = False

        def put(call: Callable[[], object]) -> None:
            nonlocal running
            calls.append(call)
            if not running:
                running = True
                self.start_thread(name, work)

        return put


class SimulatedSignals(Signals):
    """The signals of a simulated process."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self._fd, self._source = process.descriptor()
        self._arrived: deque[signal.Signals] = deque()
        self._stops = False

    @property
    def stop_requested(self) -> bool:
        """Whether SIGTERM has arrived."""
        return self._stops

    def fileno(self) -> int:
        """The number of its descriptor."""
        return self._fd

    def read(self) -> tuple[signal.Signals, ...]:
        """The signals since the last call."""
        return tuple(map(signal.Signals, self.drain()))

    def drain(self) -> bytes:
        """Their numbers."""
        arrived = bytes(self._arrived)
        self._arrived.clear()
        self._source.is_readable = False
        return arrived

    @contextmanager
    def abrupt(self) -> Iterator[None]:
        """Raises SystemExit at the end of the block if SIGTERM has arrived."""
        yield
        if self._stops:
            raise SystemExit(128 + signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal; a stopped process handles it later."""
        self._process.deliver(lambda: self._take(number))

    def _take(self, number: signal.Signals) -> None:
        self._stops = self._stops or number == signal.SIGTERM
        self._arrived.append(number)
        self._source.set()

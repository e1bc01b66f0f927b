"""The event loop of a process or thread that owns sockets: readable sources, timers, and calls after each round."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import zmq

from heron.clock import Clock, SystemClock
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.socket import Channel, Hub, Inbox

if TYPE_CHECKING:  # instances do not use it, and need not import it
    from heron.ipc.guarded_hub import GuardedHub

__all__ = ["BusyPeriods", "Reactor", "Timer"]

_LONGEST_WAIT_S = 60.0
_PERIOD_S = 0.1
_QUIET = 2  # periods without an event: then nothing is left to adapt before the next event


class Timer:
    """A call at a certain time (`due_s`, monotonic seconds); repeated if it has a period."""

    __slots__ = ("call", "cancelled", "due_s", "period_s")

    def __init__(self, call: Callable[[], None], due_s: float, period_s: float | None) -> None:
        self.call = call
        self.due_s = due_s
        self.period_s = period_s
        self.cancelled = False

    def cancel(self) -> None:
        """Prevents further calls; idempotent."""
        self.cancelled = True


class Reactor:
    """Calls back when a source is readable or a timer fires, always on the thread that runs the reactor.

    `late_s` is how late the round began because the thread had to wait for a processor or for the interpreter lock:
    the seconds since a timer became due while the thread slept, 0 when none did.
    """

    def __init__(self, clock: Clock | None = None, machine: Machine = REAL_MACHINE) -> None:
        self._clock = clock or SystemClock()
        self.machine = machine
        self._poller = machine.poller()
        self._calls: dict[object, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._round_end: list[Callable[[], None]] = []
        self._running = True
        self.late_s = 0.0
        self._stop = machine.wakeup()
        self.on_readable(self._stop.fd, self._stop.drain)

    def on_readable(self, source: Channel | Hub | Inbox | int, call: Callable[[], None]) -> None:
        """Calls `call` in each round in which `source` (a socket or a file descriptor) is readable."""
        key = source if isinstance(source, int) else source.raw
        self._poller.register(key, zmq.POLLIN)
        self._calls[key] = call

    def on_disconnect(
        self, channel: Channel, call: Callable[[], None], on_connect: Callable[[], None] | None = None
    ) -> None:
        """Calls `call` when the peer of the channel is gone or cannot be reached, `on_connect` when it is connected.

        Only channels that connect once call `on_connect`.
        """
        monitor = channel.monitor()

        def drain() -> None:
            connected, gone = channel.take_changes()
            if connected and on_connect is not None:
                on_connect()
            if gone:
                call()

        self._poller.register(monitor, zmq.POLLIN)
        self._calls[monitor] = drain

    def guard(self, hub: GuardedHub) -> None:
        """Serves the gate of a hub on the network: checks the keys of peers that connect, and counts refused ones."""
        sources, looks = hub.attendants, False

        def serve() -> None:
            nonlocal looks
            if hub.serve() and not looks:  # a look for each event would cost as much as strangers like
                looks = True
                self.after(hub.LOOK_S, look)

        def look() -> None:
            nonlocal looks
            looks = self._calls.get(sources[0]) is serve and hub.look()
            if looks:
                self.after(hub.LOOK_S, look)

        for source in sources:
            self._poller.register(source, zmq.POLLIN)
            self._calls[source] = serve

    def pause(self, source: Channel) -> None:
        """Stops reading a source until `resume`."""
        if source.raw in self._poller:
            self._poller.unregister(source.raw)

    def resume(self, source: Channel) -> None:
        """Continues to read a paused source."""
        self._poller.register(source.raw, zmq.POLLIN)

    def forget(self, source: Channel | Hub | Inbox | int) -> None:
        """Ends all calls for a source. Call it before closing the source."""
        keys: tuple[object, ...] = (source,) if isinstance(source, int) else (source.raw, *source.attendants)
        for key in keys:
            if key in self._poller:
                self._poller.unregister(key)
            self._calls.pop(key, None)

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Calls once, `delay_s` from now."""
        return self._schedule(Timer(call, self._clock.monotonic_s() + delay_s, None))

    def every(self, period_s: float, call: Callable[[], None]) -> Timer:
        """Calls every `period_s`, the first time one period from now."""
        return self._schedule(Timer(call, self._clock.monotonic_s() + period_s, period_s))

    def at_round_end(self, call: Callable[[], None]) -> None:
        """Calls after all other calls of each round, to send the data that the round has gathered."""
        self._round_end.append(call)

    def run(self) -> None:
        """Runs rounds until `stop`; returns at once if `stop` was called before."""
        while self._running:
            self.run_once()

    def run_once(self, longest_s: float = _LONGEST_WAIT_S) -> None:
        """Runs one round: waits for a source or a timer, at most `longest_s`, and makes the calls that are due."""
        begun_s = self._clock.monotonic_s()
        timer_s = self._next_timer_s(begun_s)
        wait_s = min(longest_s, timer_s)
        events = self._poller.poll(max(0, -int(-wait_s * 1000 // 1)))
        self.late_s = max(0.0, self._clock.monotonic_s() - begun_s - timer_s) if timer_s > 0 else 0.0
        for key, _ in events:
            call = self._calls.get(key)
            if call is not None:
                call()
        self._run_timers()
        for call in self._round_end:
            call()

    def stop(self) -> None:
        """Ends `run` after the present round. May be called from any thread and from a signal handler."""
        self._running = False
        self._stop.asleep = True
        self._stop.wake()

    def _schedule(self, timer: Timer) -> Timer:
        heapq.heappush(self._timers, (timer.due_s, next(self._order), timer))
        return timer

    def _next_timer_s(self, now_s: float) -> float:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        if not self._timers:
            return _LONGEST_WAIT_S
        return max(0.0, self._timers[0][0] - now_s)

    def _run_timers(self) -> None:
        if not self._timers:
            return
        now = self._clock.monotonic_s()
        while self._timers and self._timers[0][0] <= now:
            _, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            if timer.period_s is not None:
                timer.due_s = now + timer.period_s
                self._schedule(timer)
            timer.call()


class BusyPeriods:
    """Periods of a tenth of a second in which a process looks for what has no event, while it has something to do.

    A process in which nothing happens has no periods, so it sleeps. `due_s` is when the present period ends, and in a
    look when it should have ended (monotonic seconds).
    """

    def __init__(self, reactor: Reactor, looks: tuple[Callable[[], object], ...], may_end: Callable[[], bool]) -> None:
        """Calls `looks` at the end of each period. `may_end`: without an event there is nothing to look for."""
        self._reactor = reactor
        self._looks = looks
        self._may_end = may_end
        self._timer: Timer | None = None
        self._quiet = 0
        self.due_s = 0.0

    def note(self) -> None:
        """Something has arrived, or leaves."""
        self._quiet = 0

    def begin_if_due(self) -> None:
        """Begins a period if none runs and there is something to look for; called at the start and in each round."""
        if self._timer is None and not (self._quiet >= _QUIET and self._may_end()):
            self._timer = self._reactor.after(_PERIOD_S, self._end)
            self.due_s = self._timer.due_s

    def _end(self) -> None:
        self._timer = None
        self._quiet += 1
        for look in self._looks:
            look()

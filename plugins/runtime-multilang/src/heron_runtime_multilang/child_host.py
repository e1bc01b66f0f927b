"""The child of a task: its start, its deaths and its next start.

Everything here runs in the task thread, except for `ChildIo`. A child that dies is started again after a back-off that
doubles, as the executor does it with processes. A child that dies again and again ends its task, so that the rules for
processes take over: the executor restarts the task, or gives it up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from heron.api import TopologyContext
from heron.clock import monotonic_s
from heron_runtime_multilang.child_error import ChildError
from heron_runtime_multilang.child_io import ChildDecoder, ChildIo
from heron_runtime_multilang.child_process import ChildEnd, ChildProcess
from heron_runtime_multilang.child_settings import ChildSettings

__all__ = ["ChildHost", "ChildProtocol", "ChildUser"]

T = TypeVar("T")

_FIRST_WAIT_S = 0.1  # the back-off and the limit of the executor's processes
_LAST_WAIT_S = 10.0
_MOST_FAULTS = 10
_STABLE_S = 30.0
_OUTSIDE = frozenset({-9, -15, -2, -1})  # KILL, TERM, INT, HUP: signals of somebody else do not count
_LOOK_S = 0.25
_PAUSE_S = 0.002  # less than the linger of a task's output
_STOP_S = 3.0  # an executor that stops a task has 5 s


class ChildUser(Protocol):
    """What the host needs of the component."""

    def log(self, message: str, level: str | None = None) -> None:
        """Log a message."""
        ...

    def report_error(self, error: Exception) -> None:
        """Show and count an error."""
        ...


class ChildProtocol(Protocol[T]):
    """What the host and a child say to each other, with values of type `T` from the child."""

    heartbeat: bytes
    """A message that each child answers."""

    def begin(self) -> tuple[ChildDecoder[T], bytes]:
        """Return a decoder for the next child, and the first message to it."""
        ...

    def is_ready(self, output: T) -> bool:
        """Whether this output says that the child has started."""
        ...

    def carry_out(self, output: T, io: ChildIo[T], host: ChildHost[T]) -> None:
        """Carry out what is the same for spouts and bolts. What is unknown is a fault of the child: kill it.

        Raises:
            ChildError: when it says that a child that is not ready cannot start.
        """
        ...

    def ended(self) -> None:
        """Release what `begin` took: there is no child now."""
        ...


class ChildHost(Generic[T]):
    """The child of one task. `io` is None while there is none.

    `changed` is called in the task thread soon after output has arrived, or the child has died, or may be started
    again; None if the component looks by itself. `deaths_end_task` ends the task with its child. A component that
    `takes_turns` with its child waits for the end of each. `death` is the last death that was not asked for.
    """

    def __init__(
        self,
        settings: ChildSettings,
        context: TopologyContext,
        user: ChildUser,
        protocol: ChildProtocol[T],
        changed: Callable[[], None] | None = None,
        *,
        deaths_end_task: bool = False,
        takes_turns: bool = False,
    ) -> None:
        self.settings = settings
        self.user = user
        self.io: ChildIo[T] | None = None
        self.starts = 0
        self.death: ChildError | None = None
        self._protocol = protocol
        self._changed = changed
        self._deaths_end_task = deaths_end_task
        self._collector = context.threadsafe_collector()
        self._arrived = threading.Event()
        self._is_queued = self._flush_is_queued = False
        self.is_stopping = False
        self._deaths = self._faults = 0
        self._started_s = self._restart_s = 0.0
        self._pause_s = _PAUSE_S if changed is not None and not takes_turns else 0.0

    def start(self) -> None:
        """Start the child, and wait until it is ready.

        Raises:
            ChildError: when it cannot be started, ends, or is not ready in time.
        """
        settings = self.settings
        decoder, greeting = self._protocol.begin()
        self._started_s = monotonic_s()
        try:
            process = ChildProcess(settings)
        except OSError as error:
            self._protocol.ended()
            msg = f"cannot be started: {error}"
            raise self.error(msg, "start") from error
        self.starts += 1
        io = ChildIo(process, decoder, self._nudge, settings.timeout_s)
        io.input.send(greeting)
        io.start()
        io.input.flush()
        self._await_ready(io)
        io.pause_s = self._pause_s
        if self._changed is not None:
            io.heartbeat = self._protocol.heartbeat
        self.io = io

    def restart_if_due(self) -> ChildIo[T] | None:
        """Start the child again, if there is none and its back-off is over. Return the child that there is now.

        Raises:
            SystemExit: when it has died too often.
        """
        if self.io is None and not self.is_stopping and monotonic_s() >= self._restart_s:
            try:
                self.start()
            except ChildError as error:
                self._note_death(error, counts=True)
        return self.io

    def flush_soon(self) -> None:
        """Write what waits for the child when the task has worked on what it has received."""
        if not self._flush_is_queued:
            self._flush_is_queued = True
            self._collector.call(self._flush)

    def wait(self, limit_s: float = _LOOK_S) -> None:
        """Wait for output of the child, or for the end of its back-off, up to `limit_s`."""
        if self.io is not None:
            self.io.input.flush()
        else:
            limit_s = min(limit_s, max(0.0, self._restart_s - monotonic_s()))
        self._arrived.wait(limit_s)
        self._arrived.clear()

    def died(self, io: ChildIo[T], end: ChildEnd) -> None:
        """The child has ended: report it, and decide when it is started again.

        Raises:
            SystemExit: when the task has to end with it.
            Exception: the error, when `topology.on.error` is ``stop``.
        """
        self.io = None
        io.join()
        self._protocol.ended()
        if monotonic_s() - self._started_s >= _STABLE_S:
            self._deaths = self._faults = 0
        error = self.error(f"{end.describe()}; its tuples fail", end.how, io.pid)
        self._note_death(error, counts=bool(end.fault) or end.code not in _OUTSIDE)

    def carry_out(self, output: T, io: ChildIo[T]) -> None:
        """Carry out what is the same for spouts and bolts."""
        self._protocol.carry_out(output, io, self)

    def stop(self, drain: Callable[[], None], limit_s: float = _STOP_S) -> ChildEnd | None:
        """Close the stdin of the child, and wait for its end; kill it when the time is over.

        Return its end, with the fault of a child that was killed; None if there was no child.
        """
        io, self.is_stopping = self.io, True
        if io is None:
            return None
        io.close_stdin()
        deadline_s = monotonic_s() + limit_s
        while io.end is None and monotonic_s() < deadline_s:
            self.wait()
            drain()
        fault = ""
        if io.end is None:
            fault = f"it did not end within {limit_s:g} s after the end of its stdin"
            io.kill(fault)
            self.user.log(f"child {io.pid} did not end within {limit_s:g} s after the end of its stdin", "warn")
        io.join()
        drain()
        self.io = None
        self._protocol.ended()
        end = io.end
        # the child may end just before it is killed; its last output is dropped then too
        return replace(end, fault=fault) if end is not None and fault and not end.fault else end

    def reply(self, io: ChildIo[T], message: bytes) -> None:
        """Send what the child waits for."""
        self._pause_s = io.pause_s = 0.0
        io.input.send_first(message)

    def error(self, what: str, kind: str, pid: int | None = None) -> ChildError:
        """Return an error about the child."""
        number = "" if pid is None else f" {pid}"
        return ChildError(f"child process{number} ({self.settings.shown_command}) {what}", kind, self.place)

    @property
    def place(self) -> str:
        """The place of errors: the command, which is where its author's code is."""
        return f"the child {self.settings.shown_command}"

    def _await_ready(self, io: ChildIo[T]) -> None:
        deadline_s = self._started_s + self.settings.start_timeout_s
        while True:
            ended = io.end
            outputs = io.take()
            for position, output in enumerate(outputs):
                try:
                    self.carry_out(output, io)
                except Exception:
                    io.kill("it cannot start")
                    io.join()
                    self._protocol.ended()
                    raise
                if self._protocol.is_ready(output):
                    io.put_back(outputs[position + 1 :])
                    return
            if ended is not None:
                io.join()
                self._protocol.ended()
                msg = f"{ended.describe()}, before it was ready"
                raise self.error(msg, ended.how, io.pid)
            if monotonic_s() > deadline_s:
                io.kill(f"it was not ready within {self.settings.start_timeout_s:g} s (start_timeout_s)")
            self._arrived.wait(_LOOK_S)
            self._arrived.clear()

    def _note_death(self, error: ChildError, *, counts: bool) -> None:
        self.death = error
        self._deaths += 1
        self._faults += counts
        if self._deaths_end_task or self._faults > _MOST_FAULTS:
            self.is_stopping = True
            often = "" if self._deaths_end_task else f" (the {self._faults}th time in a row)"
            msg = f"{error}{often}"
            raise SystemExit(msg)
        wait_s = min(_FIRST_WAIT_S * 2 ** min(self._deaths - 1, 10), _LAST_WAIT_S)
        self._restart_s = monotonic_s() + wait_s
        if self._changed is not None:
            timer = threading.Timer(wait_s, self._nudge)
            timer.daemon = True
            timer.start()
        self.user.log(f"{error}; it is started again in {wait_s:g} s", "warn")
        self.user.report_error(error)

    def _nudge(self) -> None:
        """Other threads: something has changed."""
        self._arrived.set()
        if self._changed is not None and not self._is_queued:
            self._is_queued = True
            self._collector.call(self._call_changed)

    def _flush(self) -> None:
        self._flush_is_queued = False
        if self.io is not None:
            self.io.input.flush()

    def _call_changed(self) -> None:
        self._is_queued = False
        if self._changed is not None and not self.is_stopping:
            self._changed()

"""The thread that reads and writes the pipes of one child.

The task thread appends bytes for the child, and takes what has arrived. Neither thread waits for the other: the ends of
a deque are atomic under the interpreter lock, and a wake-up costs a system call only while the other thread sleeps.
A child that floods its outputs is not read while much waits for the task thread, so the pipe makes it wait.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from heron.clock import monotonic_s
from heron_runtime_multilang.child_error import ChildProtocolError
from heron_runtime_multilang.child_input import ChildInput
from heron_runtime_multilang.child_process import ChildEnd, ChildProcess
from heron_runtime_multilang.printed_lines import PrintedLines

__all__ = ["ChildDecoder", "ChildIo"]

T = TypeVar("T")

_READ_BYTES = 1024 * 1024
_SMALL_READ_BYTES = 32 * 1024
_ARRIVED_BYTES = 8 * 1024 * 1024  # of outputs that the task thread has not taken
_HEARTBEAT_S = 1.0
_LONGEST_SLEEP_S = 1.0
_LATE_S = 5.0
_CLOSED_S = 5.0  # from the end of its stdout to the end of a child


class ChildDecoder(Protocol[T]):
    """Decodes what a child writes on stdout, as it arrives."""

    def feed(self, data: bytes) -> list[T]:
        """Return what is complete now that `data` has arrived.

        Raises:
            ChildProtocolError: when it cannot be read; the child is killed.
        """
        ...

    def end(self) -> list[T]:
        """Return what stands behind the last message, now that the child has ended."""
        ...

    @property
    def unfinished_bytes(self) -> int:
        """The size of the message that has arrived in part."""
        ...


class ChildIo(Generic[T]):
    """The pipes of a child. `nudge` is called in this thread when something has arrived, or the child has ended.

    `heartbeat` is sent every second to a child that is silent; None while the child has no answer to it. A child that
    leaves it unanswered for `timeout_s` is killed.

    `pause_s` is the time between two reads of a child that writes little at a time: a read moves the interpreter lock
    to this thread and back, which costs more than a message. It has to be 0 for a child that waits for replies.
    """

    def __init__(
        self,
        process: ChildProcess,
        decoder: ChildDecoder[T],
        nudge: Callable[[], None],
        timeout_s: float,
    ) -> None:
        self.pid = process.pid
        self.end: ChildEnd | None = None
        self.pause_s = 0.0
        self.heartbeat: bytes | None = None
        self.heard_s = self._checked_s = monotonic_s()
        self._process = process
        self._decoder = decoder
        self._nudge = nudge
        self._timeout_s = timeout_s
        self._asked_s = 0.0  # when a heartbeat was sent that is not answered
        self.input = ChildInput(process.stdin, self._wake_up)
        self._arrived: deque[tuple[list[T], int]] = deque()
        self._arrived_bytes = self._taken_bytes = 0
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._sleeps = False
        self._fault = ""
        self._closes = False
        self._reads = False
        self._stdout_ended_s = 0.0
        self._printed = PrintedLines(process.pid)
        self._never = threading.Event()
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._run, name=f"child-{process.pid}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait until a child that has ended, or is to end, is reaped."""
        self._thread.join()
        if self._wakeup >= 0:
            os.close(self._wakeup)
            self._wakeup = -1

    def take(self) -> list[T]:
        """Return what has arrived since the last call."""
        taken: list[T] = []
        while self._arrived:
            outputs, size = self._arrived.popleft()
            taken += outputs
            self._taken_bytes += size
        if not self._reads:
            self._wake()
        return taken

    def put_back(self, outputs: list[T]) -> None:
        """Return outputs to the front of those that have arrived."""
        if outputs:
            self._arrived.appendleft((outputs, 0))

    @property
    def is_at_fault(self) -> bool:
        """Whether the child is killed because of a fault; what it has sent does not count any more."""
        return bool(self._fault)

    def close_stdin(self) -> None:
        """Close the child's stdin when everything is written."""
        self._closes = True
        self._wake()

    def kill(self, fault: str) -> None:
        """Kill the child because of a fault."""
        self._fault = self._fault or fault
        self._wake()

    def _wake_up(self) -> None:
        if self._sleeps:
            self._wake()

    def _wake(self) -> None:
        self._sleeps = False
        if self._wakeup >= 0:
            os.eventfd_write(self._wakeup, 1)

    def _run(self) -> None:
        process = self._process
        try:
            for each in (self._wakeup, process.stderr, process.ended):
                self._poll.register(each, select.POLLIN)
            self._read_stdout(on=True)
            while not self._fault and not self._turn():
                pass
        except ChildProtocolError as error:
            self._fault = str(error)
        except Exception as error:  # a fault of this code must not leave the task waiting
            self._fault = f"its pipes failed: {error!r}"
        finally:
            process.kill()
            self._finish()

    def _turn(self) -> bool:
        """Write, wait, and read once; return whether the child has ended."""
        process = self._process
        self._write()
        self._sleeps = True
        try:
            events = dict(self._poll.poll(0 if self.input.can_write() else _LONGEST_SLEEP_S * 1000))
        finally:
            self._sleeps = False
        if self._wakeup in events:
            os.eventfd_read(self._wakeup)
        if process.stderr in events:
            self._read_stderr()
        if process.stdout in events:
            self._receive()
        self._read_stdout(on=self._arrived_bytes - self._taken_bytes < _ARRIVED_BYTES)
        if process.ended in events:
            return True
        self._check(monotonic_s())
        return False

    def _write(self) -> None:
        """Write what waits, as far as the pipe has room."""
        with self.input.lock:
            try:
                is_written = self.input.push()
            except OSError:  # the child has closed it; its end, or its silence, is noticed elsewhere
                self._close_stdin()
                return
            self._block(on=not is_written)
            if is_written and self._closes:
                self._close_stdin()

    def _block(self, *, on: bool) -> None:
        """Wait for room in stdin, or do not."""
        if on is self.input.is_blocked or not self.input.is_open:
            return
        self.input.is_blocked = on
        if on:
            self._poll.register(self._process.stdin, select.POLLOUT)
        else:
            self._poll.unregister(self._process.stdin)

    def _close_stdin(self) -> None:
        if self.input.is_open:
            self._block(on=False)
            self._process.close_stdin()
        self.input.close()

    def _read_stdout(self, *, on: bool) -> None:
        on = on and not self._stdout_ended_s
        if on is not self._reads:
            self._reads = on
            if on:
                self._poll.register(self._process.stdout, select.POLLIN)
            else:
                self._poll.unregister(self._process.stdout)
            self.heard_s = monotonic_s()  # a child that was not read cannot have answered

    def _receive(self) -> None:
        """Read stdout once."""
        data = _read(self._process.stdout)
        if data == b"":
            self._stdout_ended_s = monotonic_s()
            return
        if data is None:
            return
        outputs = self._decoder.feed(data)
        if outputs:
            self._arrived_bytes += len(data)
            self._arrived.append((outputs, len(data)))
        self.heard_s = monotonic_s()  # after the output has arrived: what it settles is known
        self._asked_s = 0.0
        if outputs:
            self._nudge()
        if self.pause_s and len(data) < _SMALL_READ_BYTES:
            self._never.wait(self.pause_s)

    def _read_stderr(self) -> None:
        data = _read(self._process.stderr)
        if data:
            self._printed.add(data)
        elif data == b"":
            self._poll.unregister(self._process.stderr)

    def _check(self, now_s: float) -> None:
        if self._stdout_ended_s and now_s - self._stdout_ended_s > _CLOSED_S:
            self._fault = "it has closed its stdout"
        if now_s - self._checked_s > _LATE_S:  # this process was stopped, and perhaps the child too
            self._asked_s = 0.0
            self.heard_s = now_s
        self._checked_s = now_s
        if self.heartbeat is None or not self._reads:
            return
        if not self.input.is_open and not self._closes and now_s - self.heard_s > self._timeout_s:
            self._fault = "it has closed its stdin"
        if self._asked_s:
            if now_s - max(self._asked_s, self.heard_s) > self._timeout_s:
                self._fault = f"it gave no sign of life for {self._timeout_s:g} s (timeout_s)"
        elif now_s - self.heard_s >= _HEARTBEAT_S and self.input.is_open:
            self._asked_s = now_s
            self.input.add_first(self.heartbeat)

    def _finish(self) -> None:
        """The child has ended, or is killed: read what it has left, reap it, and tell the task thread."""
        process, fault, unfinished = self._process, self._fault, 0
        try:
            while not fault and (data := _read(process.stdout)):
                self._arrived.append((self._decoder.feed(data), len(data)))
            if not fault and (rest := self._decoder.end()):
                self._arrived.append((rest, 0))
            unfinished = self._decoder.unfinished_bytes
        except ChildProtocolError as error:
            fault = str(error)
        while data := _read(process.stderr):
            self._printed.add(data)
        with self.input.lock:
            self.input.close()  # its descriptor may be of another file from here on
            code = process.reap()
        self.end = ChildEnd(code, fault, unfinished, self._printed.end())
        self._nudge()


def _read(descriptor: int) -> bytes | None:
    """Read once; b"" at the end, None if there is nothing now."""
    try:
        return os.read(descriptor, _READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""

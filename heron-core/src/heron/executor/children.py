"""The child processes of an executor. They start from its main thread, so that they cannot outlive the executor."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT
from heron.driver_kit.process_starter import ProcessStarter, StartedProcess
from heron.errors import HeronError
from heron.executor.child_outputs import ChildOutput, ChildOutputs
from heron.executor.process_restarts import describe_exit

__all__ = ["ChildEnd", "Children"]

_SIGNALS = frozenset(int(each) for each in signal.Signals)
_WITHOUT_LAST_LINE = frozenset(map(int, (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)))
_WITH_MEANING = frozenset({EXIT_TEMPORARY, EXIT_USER_INIT})
_EXIT_OTHER = 1
_REASON_LENGTH = 500  # characters of a last line that are shown


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """A child that ended: the exit code as in `subprocess`, and a text.

    The code is 1 where the child has ended with a code that has a meaning, but not by Heron's decision.
    The text has the exit code, what is known of the sender of a signal, and the last line of output. A signal from
    outside has nothing to do with the output.
    """

    name: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Child:
    process: StartedProcess
    output: ChildOutput
    end_note: Path | None

    def ended_by_engine(self) -> bool:
        """Whether the engine's own code gave the exit code."""
        return self.end_note is None or self.end_note.exists()


class Children:
    """Starts, reaps and signals children by name; each name has at most one child at a time.

    `signal_cause` says what is known of a signal that ended a child and that was not sent from here; "" for nothing.
    `starter` starts them, and `outputs` moves what they print to files.
    """

    def __init__(
        self,
        signal_cause: Callable[[signal.Signals], str] = lambda _signal: "",
        starter: ProcessStarter | None = None,
        outputs: ChildOutputs | None = None,
    ) -> None:
        self._children: dict[str, _Child] = {}
        self._signalled: set[str] = set()
        self._signal_cause = signal_cause
        self._starter = starter or ProcessStarter()
        self._outputs = outputs or ChildOutputs()

    def alive(self) -> frozenset[str]:
        """The names of children that were started and not reaped yet."""
        return frozenset(self._children)

    def pid(self, name: str) -> int:
        """The process id of a child that is alive, else 0."""
        child = self._children.get(name)
        return child.process.pid if child else 0

    def start(self, name: str, argv: Sequence[str], output: Path, end_note: Path | None = None) -> int:
        """Starts a child, appends its output to a file, and returns its process id.

        The child writes `end_note` if it gives an exit code with a meaning; see `parent_process.END_NOTE`.

        Raises:
            HeronError: when the system refuses to start it.
        """
        try:
            if end_note is not None:
                end_note.unlink(missing_ok=True)
            opened = self._outputs.open(output)
        except OSError as error:
            raise _cannot_start(name, error) from error
        try:
            with os.fdopen(opened.take_writer(), "wb", buffering=0) as pipe:
                process = self._starter.start(argv, pipe)
        except OSError as error:
            self._outputs.close(opened)
            raise _cannot_start(name, error) from error
        self._children[name] = _Child(process, opened, end_note)
        return process.pid

    def reap(self) -> tuple[ChildEnd, ...]:
        """The children that have ended since the last call."""
        ended = []
        for name, child in tuple(self._children.items()):
            code = child.process.poll()
            if code is not None:
                del self._children[name]
                _kill_group(child.process.pid)  # programs that user code started must not outlive it
                self._outputs.close(child.output)
                of_engine = code not in _WITH_MEANING or child.ended_by_engine()
                reason = self._reason(name, child, code, "" if of_engine else "not given by Heron")
                ended.append(ChildEnd(name, code if of_engine else _EXIT_OTHER, reason))
                self._signalled.discard(name)
        return tuple(ended)

    def ask(self, name: str) -> None:
        """Sends SIGTERM to a child."""
        child = self._children.get(name)
        if child is not None:
            self._signalled.add(name)
            child.process.terminate()

    def kill(self, name: str) -> None:
        """Sends SIGKILL to a child and to its process group."""
        child = self._children.get(name)
        if child is not None:
            self._signalled.add(name)
            child.process.kill()
            _kill_group(child.process.pid)

    def move_outputs(self) -> None:
        """Moves what the children have printed so far to their files; `outputs` with a reactor does so by itself."""
        for child in self._children.values():
            child.output.move()

    def hurry(self) -> None:
        """Lets no reader hold up a child for long: the executor stops."""
        self._outputs.hurry()

    def kill_all(self) -> None:
        """Kills all children and waits until they are gone, and ends the fork server."""
        for name in self.alive():
            self.kill(name)
        for child in self._children.values():
            child.process.wait()
            self._outputs.close(child.output)
        self._children.clear()
        self._starter.close()

    def _reason(self, name: str, child: _Child, code: int, cause: str) -> str:
        described, last = describe_exit(code), _last_line(child.output.tail)
        if -code in _SIGNALS:
            cause = "by its executor" if name in self._signalled else self._signal_cause(signal.Signals(-code))
        described += f" ({cause})" if cause else ""
        return f"{described}: {last}" if last and -code not in _WITHOUT_LAST_LINE else described


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _cannot_start(name: str, error: OSError) -> HeronError:
    return HeronError(f"process {name} cannot be started: {error.strerror}: {error.filename}")


def _last_line(tail: bytes) -> str:
    """The last line that a child wrote; after an exception, it names the exception."""
    lines = tail.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:_REASON_LENGTH] for line in reversed(lines) if line.strip()), "")

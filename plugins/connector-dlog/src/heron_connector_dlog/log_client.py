"""The client of a task: channels over one JVM, which starts with the first of them and again after its death."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from heron.errors import ConnectorError, HeronError, UnreachableError
from heron_connector_dlog.client_process import ClientProcess
from heron_connector_dlog.errors import ClientDiedError, FencedError, LogMissingError
from heron_connector_dlog.frames import Kind, question, setup, texts_of
from heron_connector_dlog.log_namespace import LogNamespace

__all__ = ["TIMEOUT_S", "Channel", "LogClient"]

_log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
"""Seconds for an answer of the logs: a JVM needs 2 to start, on a busy machine 30; a writer after a death 1 to 10."""

_KINDS: dict[str, Callable[[str], HeronError]] = {
    "away": UnreachableError,
    "fenced": UnreachableError,  # its writer may still be the owner of the log, and opens it again
    "taken": FencedError,
    "missing": LogMissingError,
    "refused": ConnectorError,
    "other": ConnectorError,
}


class Channel:
    """A reader, a writer or a question in the JVM. It is over after its first error."""

    def __init__(self, number: int, process: ClientProcess, forget: Callable[[int], None]) -> None:
        self._number, self._process, self._forget = number, process, forget
        self.inbox: SimpleQueue[tuple[Kind, bytes] | HeronError] = SimpleQueue()
        self.hear: Callable[[Kind, bytes], None] | None = None
        """Is called with each frame before `next` returns it, by the thread that reads the frames."""

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Send a frame."""
        self._process.send(kind, self._number, body)

    def next(self, wait_s: float = 0.0) -> tuple[Kind, bytes] | None:
        """The next frame from the client; None if there is none within `wait_s`.

        Raises:
            UnreachableError: when the logs do not answer; `ClientDiedError` when the JVM has ended.
            ConnectorError: when they refuse what was asked; `FencedError`, `LogMissingError`.
        """
        try:
            found = self.inbox.get(block=wait_s > 0, timeout=wait_s or None)
        except Empty:
            return None
        if isinstance(found, HeronError):
            raise found
        if found[0] == Kind.FAILED:
            kind, story = texts_of(found[1])
            raise _KINDS[kind](story)
        return found

    def close(self) -> None:
        """Release it; again has no effect."""
        self._forget(self._number)


class LogClient:
    """The client. Give each task its own; calls come from one thread."""

    def __init__(self, namespace: LogNamespace) -> None:
        self._namespace = namespace
        self._process: ClientProcess | None = None
        self._channels: dict[int, Channel] = {}
        self._numbers = itertools.count(1)
        self._users: set[int] = set()
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """The process id of the JVM; 0 if there is none."""
        return self._process.pid if self._process is not None else 0

    def use(self, user: object) -> None:
        """Somebody begins to use it."""
        self._users.add(id(user))

    def release(self, user: object) -> None:
        """Somebody has ended; the last one ends the JVM. Again has no effect."""
        self._users.discard(id(user))
        if not self._users:
            self.close()

    def start(self) -> ClientProcess:
        """Start the JVM if there is none; does not wait for the logs.

        Raises:
            JavaError: when there is no JDK, or jars are missing.
            ConnectorError: when the JVM cannot be started.
        """
        if self._process is not None and self._process.death is not None:
            self.close()
        if self._process is None:
            self._process = ClientProcess(self._namespace.command(), self._hear, self._ended)
            self._process.send(Kind.SETUP, 0, setup(self._namespace.uri, self._namespace.given_options()))
        return self._process

    def channel(self) -> Channel:
        """A new channel; as `start`."""
        process = self.start()
        channel = Channel(next(self._numbers), process, self._forget)
        with self._lock:
            self._channels[channel._number] = channel
        if process.death is not None:
            channel.inbox.put(process.death)
        return channel

    def ask(self, name: str, stream: str = "", number: int = 0) -> str:
        """The answer to a question. Waits.

        Raises:
            UnreachableError: when the logs do not answer within 60 s.
            ConnectorError: as `Channel.next`.
        """
        channel = self.question(name, stream, number)
        try:
            answer = channel.next(TIMEOUT_S)
        finally:
            channel.close()
        if answer is None:
            msg = f"the logs at {self._namespace.uri} did not answer within {TIMEOUT_S:g} s"
            raise UnreachableError(msg)
        return texts_of(answer[1])[0]

    def question(self, name: str, stream: str = "", number: int = 0) -> Channel:
        """A channel on which the answer will come."""
        channel = self.channel()
        channel.send(Kind.ASK, question(name, stream, number))
        return channel

    def close(self) -> None:
        """End the JVM; idempotent."""
        process, self._process = self._process, None
        with self._lock:
            self._channels.clear()
        if process is not None:
            process.close()

    def _hear(self, kind: Kind, number: int, body: bytes) -> None:
        with self._lock:
            channel = self._channels.get(number)
        if channel is not None:
            if channel.hear is not None:
                channel.hear(kind, body)
            channel.inbox.put((kind, body))

    def _ended(self) -> None:
        """The JVM has ended: whoever waits hears it."""
        process = self._process
        if process is None or process.death is None:
            return  # it was closed, or this is the end of a former one
        _log.warning("%s", process.death)
        with self._lock:
            waiting, self._channels = list(self._channels.values()), {}
        for each in waiting:
            each.inbox.put(process.death)

    def _forget(self, number: int) -> None:
        with self._lock:
            channel = self._channels.pop(number, None)
        if channel is not None:
            with contextlib.suppress(ClientDiedError):
                channel.send(Kind.CLOSE)

"""Writes to one log, in order. Transaction ids count the records of the log, so they tell what is there.

To open a log fences its former writer, and recovers what that one has written. The last transaction id is then final:
records up to it are in the log, all others are not. So what was on its way when a connection broke is sent again from
there, and no record is there twice while this object has the log.

Records go out at once while none is on its way. Others are gathered until there are enough for a frame, or until the
answer to those before comes: the thread that reads the answer sends them. So one record is not delayed, and many take
few frames. This thread and that of the task share the records, under a lock.

The log keeps the name of its owner. A writer takes the log over when it opens it for the first time; later it opens
the log only if it is still the owner. So of two writers that live, the one that came first stays out.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UnreachableError
from heron_connector_dlog.errors import ClientDiedError, FencedError
from heron_connector_dlog.frames import Kind, number_of, open_writer, write
from heron_connector_dlog.log_client import TIMEOUT_S, Channel, LogClient
from heron_connector_dlog.reader import StreamReader
from heron_connector_dlog.record import Place

__all__ = ["StreamWriter"]

_log = logging.getLogger(__name__)

_HELD_BYTES = 4 << 20
_RECORD_BYTES = 100  # of a record besides its data, about
_FRAME_RECORDS = 1000
_WAIT_S = 0.2
_PAUSE_S = 0.2


class StreamWriter:
    """The writer of one log. It opens the log, and creates it if it is missing, when it has something to write."""

    def __init__(self, client: LogClient, stream: str) -> None:
        self.stream = stream
        self._client = client
        self._owner = secrets.token_hex(8)
        self._channel: Channel | None = None
        self._last: int | None = None  # the last transaction id that is acknowledged; None while another one may write
        self._sent: deque[bytes] = deque()  # behind it, and on their way if the log is open
        self._unsent: deque[bytes] = deque()  # behind those
        self._held_bytes = 0  # of both
        self._is_writer = False  # of the channel at hand
        self._lock = threading.Lock()
        self._trouble: ConnectorError | UnreachableError | None = None
        self._never = threading.Event()
        client.use(self)

    def put(self, payload: bytes) -> None:
        """Write a record; waits while much is on its way, as long as that takes.

        Raises:
            ClientDiedError: when the JVM of the client has ended. The record is not taken; put it again.
            ConnectorError: as `flush`; the record is not taken. After a `FencedError` it is raised until `flush` has.
        """
        if self._held_bytes >= _HELD_BYTES:
            self._wait_for_room()
        with self._lock:
            self._unsent.append(payload)
            self._held_bytes += len(payload) + _RECORD_BYTES

    def put_all(self, payloads: Sequence[bytes]) -> None:
        """Write records, and hand them to the client; as `put` and `send`. After an error some may be taken."""
        for begin in range(0, len(payloads), _FRAME_RECORDS):
            if self._held_bytes >= _HELD_BYTES:
                self._wait_for_room()
            some = payloads[begin : begin + _FRAME_RECORDS]
            with self._lock:
                self._unsent += some
                self._held_bytes += sum(map(len, some)) + _RECORD_BYTES * len(some)
            self.send()

    def send(self) -> None:
        """Hand what was put to the client, or leave it to the next answer; does not wait for the logs.

        `flush` raises what fails.
        """
        channel = self._channel
        gathers = self._is_writer and self._sent and len(self._unsent) < _FRAME_RECORDS
        if gathers and channel is not None and channel.inbox.empty():
            return
        if isinstance(self._trouble, FencedError):
            return
        try:
            self._turn(0.0)
        except (ConnectorError, UnreachableError) as error:
            _log.warning("log %s: %s", self.stream, error)
            self._drop()
            self._trouble = None if type(error) is UnreachableError else error

    def flush(self, wait_s: float = TIMEOUT_S) -> int:
        """Wait until a quorum has everything; returns the last transaction id of the log.

        Raises:
            UnreachableError: when the logs do not have it after `wait_s`; `ClientDiedError` when the JVM has ended.
            FencedError: when another writer has taken the log over. The next call takes it back.
            ConnectorError: when the logs refuse the records.
        """
        try:
            return self._settle(wait_s)
        except FencedError:
            self._last = None
            raise

    def _wait_for_room(self) -> None:
        """Waits while much is on its way; raises as `put`."""
        while self._held_bytes >= _HELD_BYTES:
            try:
                self._settle(TIMEOUT_S, _HELD_BYTES // 2)
            except FencedError as error:
                self._trouble = error
                raise
            except ClientDiedError:
                raise
            except UnreachableError as error:
                _log.warning("%s", error)

    def _settle(self, wait_s: float, held_bytes: int = 0) -> int:
        """Wait until a quorum has all but `held_bytes`; as `flush`."""
        if self._trouble is not None:
            error, self._trouble = self._trouble, None
            raise self._named(error) from error
        until_s, trouble = monotonic_s() + wait_s, ""
        while not self._is_open() or self._held_bytes > held_bytes:
            try:
                self._turn(min(_WAIT_S, max(0.01, until_s - monotonic_s())))
            except (ClientDiedError, ConnectorError) as error:
                self._drop()
                raise self._named(error) from error
            except UnreachableError as error:
                self._drop()
                trouble = str(error)
                self._never.wait(_PAUSE_S)
            if monotonic_s() >= until_s:
                break
        if not self._is_open() or self._last is None or self._held_bytes > held_bytes:
            told = trouble or "no answer"
            records = len(self._sent) + len(self._unsent)
            msg = f"log {self.stream!r}: {records} records wait for the logs after {wait_s:g} s: {told}"
            raise UnreachableError(msg)
        return self._last

    def records(self, after: int, last: int) -> Iterator[bytes]:
        """What the log has behind one transaction id, up to another one.

        Raises:
            UnreachableError: when the logs do not answer.
        """
        if last <= after:
            return
        answer = self._client.ask("find", self.stream, after + 1)
        place = Place(*map(int, answer.split()))
        reader = StreamReader(self._client, "sink", self.stream, place, None, skips=True)
        try:
            yield from reader.until(last, TIMEOUT_S)
        finally:
            reader.close()

    def close(self) -> None:
        """Release it. What is on its way may arrive, or not."""
        self._drop()
        self._client.release(self)

    def _turn(self, wait_s: float) -> None:
        """Open, send, and take answers, once."""
        if self._channel is None:
            channel = self._client.channel()
            channel.hear = partial(self._hear, channel)
            with self._lock:
                self._channel, self._is_writer = channel, False
            channel.send(Kind.OPEN_WRITER, open_writer(self.stream, self._owner, takes_over=self._last is None))
        with self._lock:
            self._send()
        found = self._channel.next(wait_s)
        while found is not None:
            kind, body = found
            if kind == Kind.OPENED:
                with self._lock:
                    self._opened(number_of(body))
                    self._send()
            found = self._channel.next()

    def _hear(self, channel: Channel, kind: Kind, body: bytes) -> None:
        """An answer has come; in the thread that reads the frames. Sends what was gathered meanwhile."""
        if kind == Kind.WRITTEN:
            with self._lock:
                if channel is self._channel:
                    self._acknowledged(number_of(body))
                    self._send()

    def _send(self) -> None:
        while self._unsent and self._channel is not None and self._is_writer and self._last is not None:
            first = self._last + len(self._sent) + 1
            payloads = _taken(self._unsent, _FRAME_RECORDS)
            self._sent += payloads
            self._channel.send(Kind.WRITE, write(first, payloads))

    def _opened(self, last: int) -> None:
        """What was on its way is there up to this id, or will never be."""
        if self._last is not None:
            self._acknowledged(last)
        self._unsent.extendleft(reversed(self._sent))
        self._sent.clear()
        self._last, self._is_writer = last, True

    def _acknowledged(self, last: int) -> None:
        assert self._last is not None  # noqa: S101  # it is open
        written = _taken(self._sent, last - self._last)
        self._last = max(self._last, last)
        self._held_bytes -= sum(map(len, written)) + _RECORD_BYTES * len(written)  # `flush` may go on with it

    def _is_open(self) -> bool:
        return self._channel is not None and self._is_writer

    def _named(self, error: ConnectorError | UnreachableError) -> ConnectorError | UnreachableError:
        return type(error)(f"log {self.stream!r}: {error}")

    def _drop(self) -> None:
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


def _taken(payloads: deque[bytes], most: int) -> list[bytes]:
    """The first ones, up to a number."""
    return [payloads.popleft() for _ in range(min(most, len(payloads)))]

"""Reads one log. The client pushes what is committed; a window bounds what waits here.

The position is the DLSN behind the last record that was returned. DLSNs have gaps, so each element has its own.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UnreachableError
from heron_connector_dlog.block import Block, blocks_of
from heron_connector_dlog.errors import ClientDiedError, TruncatedError
from heron_connector_dlog.frames import Kind, more, read, texts_of
from heron_connector_dlog.log_client import Channel, LogClient
from heron_connector_dlog.record import BEGIN, Place, Record

__all__ = ["StreamReader"]

_log = logging.getLogger(__name__)

_WINDOW_BYTES = 4 << 20
"""Of the frames that the client may send ahead; a reader holds twice as much at most, and one record."""
_ANSWER_S = 0.2
_AT_ONCE, _LOOK_S = 1000, 0.02
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 2.0


class StreamReader:
    """A `PlacedReader` that knows its backlog. A channel that fails is replaced by a new one at the same place."""

    def __init__(
        self, client: LogClient, operator: str, stream: str, place: Place, end: Place | None, *, skips: bool
    ) -> None:
        """`end` is where reading ends; `skips` lets it go on behind what was truncated away."""
        self._client, self._operator, self._stream = client, operator, stream
        self._end, self._skips = end, skips
        self._place = place
        self._channel: Channel | None = None
        self._waiting: deque[Block] = deque()
        self._taken: Sequence[Block] = ()
        self._lost = 0
        self._pause_s, self._open_s = _FIRST_PAUSE_S, 0.0
        self._question: Channel | None = None
        self._never = threading.Event()
        client.use(self)

    @property
    def position(self) -> Place:
        """`Reader.position`."""
        return self._place

    def read(self, limit: int) -> Sequence[Record] | None:
        """`Reader.read`; raises as `take`."""
        blocks = self.take(limit)
        return None if blocks is None else [record for each in blocks for record in each.records(self._stream)]

    def take(self, limit: int) -> Sequence[Block] | None:
        """The next records as the client has sent them, as `Reader.read` gives elements.

        Does not wait; while the logs are away there is nothing now.

        Raises:
            TruncatedError: when the position was truncated away, unless reading goes on behind it.
            LogMissingError: when the log is gone.
            ClientDiedError: when the JVM of the client has ended; the next call starts another one.
        """
        if self._end is not None and self._place >= self._end:
            return None
        try:
            self._receive(limit)
        except ClientDiedError as error:
            self._drop()
            raise self._failed(ClientDiedError, str(error)) from error
        except UnreachableError as error:
            _log.warning("source %r, log %s: %s", self._operator, self._stream, error)
            self._drop()
            self._open_s = monotonic_s() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)
        except ConnectorError as error:
            self._drop()
            raise self._failed(type(error), str(error)) from error
        self._taken = self._next(limit)
        if not self._taken and self._end is not None and self._place >= self._end:
            return None
        return self._taken

    def until(self, last_id: int, wait_s: float) -> Iterator[bytes]:
        """The records up to a transaction id; waits for them.

        Raises:
            UnreachableError: when they have not come within `wait_s`.
            ConnectorError: as `read`.
        """
        until_s = monotonic_s() + wait_s
        while True:
            for record in self.read(_AT_ONCE) or ():
                yield record.data
                if record.transaction_id >= last_id:
                    return
            if not self._taken:
                if monotonic_s() >= until_s:
                    raise self._failed(UnreachableError, f"record {last_id} has not come within {wait_s:g} s")
                self._never.wait(_LOOK_S)

    def position_of(self, index: int) -> Place:
        """`PlacedReader.position_of`."""
        for block in self._taken:
            if index < len(block):
                return block.place(index)
            index -= len(block)
        raise IndexError(index)

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`: the records behind the position. None while the logs do not answer."""
        try:
            if self._question is None:
                if self._place.passed < 0 and self._place != BEGIN:
                    return None
                self._question = self._client.question("backlog", self._stream, self._place.passed)
            answer = self._question.next(_ANSWER_S)
        except (UnreachableError, ConnectorError):
            self._question = None
            return None
        if answer is None:
            return None  # the next call takes it
        self._question.close()
        self._question = None
        return float(texts_of(answer[1])[0])

    def gauges(self) -> Mapping[str, float]:
        """`GaugedReader.gauges`: the records that were truncated away before they were read."""
        return {"truncated": float(self._lost)}

    def close(self) -> None:
        """`Reader.close`."""
        self._drop()
        self._client.release(self)

    def _receive(self, limit: int) -> None:
        """Take what has arrived, until there are as many records."""
        if self._channel is None:
            if monotonic_s() < self._open_s:
                return
            self._channel = self._client.channel()
            self._channel.send(Kind.READ, read(self._stream, self._place, _WINDOW_BYTES))
        while sum(map(len, self._waiting)) < limit and (found := self._channel.next()) is not None:
            self._waiting += blocks_of(found[1])
            self._pause_s = _FIRST_PAUSE_S

    def _next(self, limit: int) -> Sequence[Block]:
        """Some of what waits, up to the end and to a gap."""
        taken: list[Block] = []
        while self._waiting and limit > 0:
            block = self._waiting[0]
            rows = len(block) if self._end is None else block.rows_before(self._end)
            if not rows:
                assert self._end is not None  # noqa: S101  # a block has rows
                self._waiting.clear()
                self._place = self._end
                break
            first = block.place(0)
            if -1 < self._place.passed != first.passed > -1:
                if taken:
                    break  # the next call judges it
                self._jump(first)
            part = block.part(0, min(rows, limit))
            taken.append(part)
            limit -= len(part)
            self._place = part.behind()
            self._pass(part)
        return taken

    def _pass(self, part: Block) -> None:
        """The begin of what waits is taken: the client may send as much."""
        block = self._waiting.popleft()
        if len(part) < len(block):
            self._waiting.appendleft(block.part(len(part), len(block)))
        elif block.frame_bytes and self._channel is not None:
            self._channel.send(Kind.MORE, more(block.frame_bytes))

    def _jump(self, found: Place) -> None:
        """The next record is not the one that follows: accept what retention has removed, or refuse it.

        Raises:
            TruncatedError: when the author has not allowed it.
            ConnectorError: when the log is another one.
        """
        here = self._place
        lost = found.passed - here.passed
        if lost < 0:
            self._drop()
            story = f"after {here.passed} records comes number {found.passed}: the log was deleted and created again"
            raise self._failed(ConnectorError, f"{story}. To read it, submit the pipeline again without its checkpoint")
        story = (
            f"{lost} records behind place {here[:3]} were truncated away before they were read; the log goes on at "
            f"{found[:3]}"
        )
        if not self._skips:
            self._drop()
            remedy = 'To go on without them, give DlogSource truncated="skip"; to keep them next time, truncate later'
            raise self._failed(TruncatedError, f"{story}. {remedy}")
        _log.warning("source %r, log %s: %s", self._operator, self._stream, story)
        self._lost += lost

    def _failed(
        self, kind: type[ConnectorError] | type[UnreachableError], story: str
    ) -> ConnectorError | UnreachableError:
        return kind(f"source {self._operator!r}, log {self._stream!r}: {story}")

    def _drop(self) -> None:
        """What was received and not returned is sent again to the next channel."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._waiting.clear()

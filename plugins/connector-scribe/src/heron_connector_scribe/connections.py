"""The connections of a collector: bytes become calls, answers become bytes, and memory stays bounded.

| what a client sends | what becomes of it |
|---|---|
| a call, while another one waits for its answer | it waits in the buffer, and in the end in the client |
| a part of a call, while there is no room | its body is not kept; it is answered TRY_LATER when it has passed |
| more than `frame_bytes`, bytes that are no call, a call that does not arrive in time | the connection is closed |
"""

from __future__ import annotations

import fcntl
import selectors
import socket
import termios

from heron.clock import Clock
from heron_connector_scribe.connection import Connection
from heron_connector_scribe.intake import Intake
from heron_connector_scribe.log_calls import LogCalls
from heron_connector_scribe.refusals import Refusal, ServiceCounts
from heron_connector_scribe.service_options import ServiceOptions
from heron_connector_scribe.thrift_frames import MalformedFrameError

__all__ = ["Connections"]

_PROBES = (
    (socket.TCP_KEEPIDLE, 60),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 3),
    (socket.TCP_USER_TIMEOUT, 90_000),  # while an answer is under way there are no probes
)


class Connections:
    """See the module. All methods belong to the server's thread."""

    def __init__(
        self,
        options: ServiceOptions,
        selector: selectors.BaseSelector,
        calls: LogCalls,
        intake: Intake,
        counts: ServiceCounts,
        clock: Clock,
    ) -> None:
        self._options, self._selector, self._calls = options, selector, calls
        self._intake, self._counts, self._clock = intake, counts, clock
        self._open: dict[Connection, None] = {}  # those that were active last come last

    def __len__(self) -> int:
        return len(self._open)

    def add(self, sock: socket.socket, host: str) -> None:
        """Serve a client. One that is gone without a word is noticed after 90 s."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _PROBES:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        connection = Connection(sock, host, self._clock.monotonic_s())
        self._open[connection] = None
        self._calls.connections = len(self._open)
        self._watch(connection)

    def serve(self, connection: Connection, events: int) -> None:
        """Do what the socket is ready for."""
        if events & selectors.EVENT_WRITE and connection in self._open:
            self._send(connection)
        if events & selectors.EVENT_READ:
            self._receive(connection)

    def reply(self, connection: Connection, reply: bytes) -> None:
        """Send an answer for which the connection has waited; its next calls follow."""
        if connection in self._open:
            self._note_activity(connection)
            self._reply(connection, reply)
            self._parse(connection)

    def close_stalled(self, now_s: float) -> None:
        """Close the connections whose call has not arrived in time."""
        limit_s = self._options.frame_s
        for each in [each for each in self._open if each.begun_s is not None and each.waiting is None]:
            if each.begun_s is not None and now_s - each.begun_s > limit_s:
                self._refuse(each, Refusal.STALLED, f"a call was not complete after {limit_s:g} s")

    def close_idle(self, why: str) -> bool:
        """Close the connection that has been idle the longest, if that is longer than a call may take to arrive."""
        before_s = self._clock.monotonic_s() - self._options.frame_s
        for each in self._open:
            if each.active_s > before_s:
                break
            if each.is_idle:
                self._counts.refused(Refusal.CONNECTIONS, f"an idle connection of {each.host} is closed: {why}")
                self._end(each, in_order=True)
                return True
        return False

    def close(self) -> None:
        """Close all."""
        for each in list(self._open):
            self._end(each, in_order=True)

    def _receive(self, connection: Connection) -> None:
        if connection not in self._open:
            return  # closed in this round
        try:
            data = connection.sock.recv(connection.receives_bytes)
        except BlockingIOError:
            return
        except OSError:
            self._end(connection, in_order=False)
            return
        if not data:
            self._end(connection, in_order=True)
            return
        self._note_activity(connection)
        held = len(connection.received)
        passed = connection.take_in(data)
        self._intake.partial_bytes += len(connection.received) - held
        if passed:
            self._pass(connection)
        self._parse(connection)

    def _note_activity(self, connection: Connection) -> None:
        del self._open[connection]
        self._open[connection] = None
        connection.active_s = self._clock.monotonic_s()

    def _parse(self, connection: Connection) -> None:
        """Takes the complete frames, up to one that has to wait for its answer."""
        while connection in self._open and connection.waiting is None and not connection.drops:
            size = connection.frame_bytes()
            if size is None:
                break
            if not 0 < size <= self._options.frame_bytes:
                kind = Refusal.TOO_LARGE if size > 0 else Refusal.MALFORMED
                limit = f"the limit is {self._options.frame_bytes} bytes"
                self._refuse(connection, kind, f"a call of {size} bytes; {limit}")
                return
            frame = connection.take_frame(size)
            if frame is None:
                self._drop_beyond_limit(connection)
                break
            self._intake.partial_bytes -= size + 4
            self._take(connection, frame, kept=True)
        if connection in self._open:
            if connection.received and connection.begun_s is None and connection.waiting is None:
                connection.begun_s = self._clock.monotonic_s()
            self._watch(connection)

    def _drop_beyond_limit(self, connection: Connection) -> None:
        held = len(connection.received)
        if self._intake.is_over:
            connection.drop_body()
            self._intake.partial_bytes += len(connection.received) - held

    def _pass(self, connection: Connection) -> None:
        """A call whose body was not kept has ended."""
        held = len(connection.received)
        head = connection.take_head()
        self._intake.partial_bytes += len(connection.received) - held
        self._take(connection, head, kept=False)

    def _take(self, connection: Connection, frame: bytes, *, kept: bool) -> None:
        connection.begun_s = None
        try:
            reply = self._calls.take(connection, frame) if kept else self._calls.take_head(connection, frame)
        except MalformedFrameError as error:
            self._refuse(connection, Refusal.MALFORMED, str(error))
            return
        except Exception as error:  # a fault of the collector: it costs this connection, not all of them
            self._counts.refused(Refusal.FAILED, f"a connection of {connection.host} is closed: {error!r}", error)
            self._end(connection, in_order=False)
            return
        if reply:
            self._reply(connection, reply)

    def _reply(self, connection: Connection, reply: bytes) -> None:
        connection.to_send += reply
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.to_send)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(connection, in_order=False)
            return
        del connection.to_send[:sent]
        if connection.is_unread:
            self._refuse(connection, Refusal.UNREAD, "it does not read its answers")
            return
        self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        wanted, watched = connection.wanted, connection.interest
        if wanted == watched:
            return
        connection.interest = wanted
        if not watched:
            self._selector.register(connection.sock, wanted, connection)
        elif wanted:
            self._selector.modify(connection.sock, wanted, connection)
        else:
            self._selector.unregister(connection.sock)

    def _refuse(self, connection: Connection, kind: Refusal, why: str) -> None:
        self._counts.refused(kind, f"a connection of {connection.host} is closed: {why}")
        self._end(connection, in_order=False)

    def _end(self, connection: Connection, *, in_order: bool) -> None:
        del self._open[connection]
        self._calls.connections = len(self._open)
        self._intake.partial_bytes -= len(connection.received)
        connection.closed(in_order=in_order and _is_acknowledged(connection.sock))
        if connection.interest:
            self._selector.unregister(connection.sock)
        connection.sock.close()


def _is_acknowledged(sock: socket.socket) -> bool:
    """Whether all that was sent has arrived. Else the end of the connection was sent before the answer arrived."""
    return not any(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))

"""What `heron.ipc` uses of ZeroMQ: contexts and sockets over the links of the simulated network.

The behaviour is that of libzmq where the engine relies on it: what is queued before a connection, which socket reports
the end of which connection, and which messages a broken connection loses. Keys are not checked: every peer is a member.
"""

from __future__ import annotations

import errno
import struct
import sys
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import zmq  # noqa: TID251 - it simulates ZeroMQ

from heron_testing.seeded.network import Link, LinkEnd, Network
from heron_testing.seeded.world import Process

__all__ = ["SimulatedContext", "SimulatedSocket"]

_EVENT = struct.Struct("=HI")
_NETWORK = "tcp://"
_AGAIN = zmq.Again()  # roles read until it comes, and a new one takes as long as a message
_PUSH_LIMIT = 1000
_REFUSED_S = 1e-4  # nobody listens there
_SILENT_S = 2.0  # the time limit of an attempt to connect
_AGAIN_S = 0.02


class _Poller(Protocol):
    def notify(self, source: object) -> None: ...


class _Frame:
    """A part of a message with the owner of the proved key, as `zmq.Frame` has it."""

    __slots__ = ("bytes",)

    def __init__(self, data: bytes) -> None:
        self.bytes = data

    def get(self, _option: str) -> str:
        """The kind of the peer."""
        return "member"


class SimulatedContext:
    """`zmq.Context`: the sockets of one thread of a process."""

    def __init__(self, process: Process, network: Network) -> None:
        self.process = process
        self.network = network
        self._sockets: list[SimulatedSocket] = []

    def set(self, _option: int, _value: int) -> None:
        """Ignores the limits of the context."""

    def socket(self, kind: int) -> SimulatedSocket:
        """Opens a socket."""
        socket = SimulatedSocket(self, kind)
        self._sockets = [*(each for each in self._sockets if not each.closed), socket]
        return socket

    def destroy(self, linger: int | None = None) -> None:
        """Closes all sockets."""
        del linger
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def process_ended(self, *, abrupt: bool) -> None:
        """The process is gone: what the kernel has not taken is lost."""
        for each in self._sockets:
            each.close(lost=abrupt)


class _Configured:
    """The options of a socket, and the monitor that reports its connections."""

    def __init__(self, context: SimulatedContext) -> None:
        self.context = context
        self.closed = False
        self._options: dict[int, object] = {}
        self._monitor: _Monitor | None = None

    def setsockopt(self, option: int, value: object) -> None:
        """Sets an option."""
        self._options[int(option)] = value

    def getsockopt(self, option: int) -> object:
        """An option."""
        if option == zmq.MECHANISM:
            return zmq.CURVE if int(zmq.CURVE_SERVERKEY) in self._options else zmq.NULL
        return self._options.get(int(option), 0)

    @property
    def identity(self) -> bytes:
        """The name that it gives itself; empty for none."""
        named = self._options.get(int(zmq.IDENTITY))
        return named if isinstance(named, bytes) else b""

    def monitor(self, _endpoint: str, _events: int) -> None:
        """Reports nothing: connections of strangers are not simulated."""

    def get_monitor_socket(self, events: int) -> SimulatedSocket:
        """A socket that receives these events."""
        self._monitor = _Monitor(SimulatedSocket(self.context, zmq.PAIR), int(events))
        return self._monitor.socket

    def disable_monitor(self) -> None:
        """Ends the events."""
        self._monitor = None

    def report(self, event: int) -> None:
        """Reports an event to the monitor, if there is one that wants it."""
        if self._monitor is not None and self._monitor.wanted & event and not self.closed:
            self._monitor.socket.arrived((_EVENT.pack(event, 0), b""))

    @property
    def connects_once(self) -> bool:
        """Whether it does not connect again."""
        return self._options.get(int(zmq.RECONNECT_IVL)) == -1


class SimulatedSocket(_Configured):
    """`zmq.Socket`, as far as the engine uses it."""

    def __init__(self, context: SimulatedContext, kind: int) -> None:
        super().__init__(context)
        self.process = context.process
        self.host = context.process.machine.name
        self.kind = int(kind)
        self.poller: _Poller | None = None
        self._network = context.network
        self._most_unsent = _PUSH_LIMIT if kind == zmq.PUSH else sys.maxsize
        self._inbox: deque[tuple[bytes, ...]] = deque()
        self._links: dict[bytes, Link] = {}
        self._unsent: deque[tuple[bytes, ...]] = deque()
        self._connector: _Connector | None = None
        self._bound: list[str] = []

    def readable(self) -> bool:
        """Whether a message has arrived."""
        return bool(self._inbox)

    def getsockopt_string(self, _option: int, _encoding: str) -> str:
        """The endpoint that it was bound to last."""
        return self._bound[-1]

    def bind(self, endpoint: str) -> None:
        """Listens."""
        if endpoint.startswith("inproc://"):
            return
        if endpoint.startswith(_NETWORK):
            endpoint = f"{endpoint.rpartition(':')[0]}:{self._network.next_port()}"
        self._bound.append(endpoint)
        self._network.listen(endpoint, self)

    def unbind(self, endpoint: str) -> None:
        """Listens there no longer."""
        self._bound.remove(endpoint)
        if self._network.listeners.get(endpoint) is self:
            del self._network.listeners[endpoint]

    def connect(self, endpoint: str) -> None:
        """Begins to connect."""
        if endpoint.startswith("inproc://"):
            return
        self._connector = _Connector(self, self._network, endpoint)
        self._network.world.after(self._network.world.draw.uniform(2e-5, 3e-4), self._connector.attempt)

    def close(self, linger: int | None = None, *, lost: bool = False) -> None:
        """Closes it; what has not arrived of a killed process is `lost`."""
        del linger
        if self.closed:
            return
        self.closed = True
        for endpoint in tuple(self._bound):
            self.unbind(endpoint)
        for link in tuple(self._links.values()):
            link.end(self, lost=lost)
        self._links.clear()
        self._inbox.clear()

    def send(self, frame: bytes, flags: int = 0, copy: bool = True) -> None:
        """Sends a message of one part."""
        del flags, copy
        self._send((frame,))

    def send_multipart(self, parts: Sequence[bytes | zmq.Frame], flags: int = 0, copy: bool = True) -> None:
        """Sends a message; that of a router begins with its receiver."""
        del flags, copy
        given = tuple(each if isinstance(each, bytes) else each.bytes for each in parts)
        if self.kind != zmq.ROUTER:
            self._send(given)
            return
        link = self._links.get(given[0])
        if link is None:
            raise zmq.ZMQError(errno.EHOSTUNREACH)
        if not self.process.killed:
            link.send(link.client, given[1:])

    def recv(self, flags: int = 0) -> bytes:
        """The next message, of one part."""
        return self.recv_multipart(flags)[0]  # type: ignore[return-value]

    def recv_multipart(self, flags: int = 0, copy: bool = True) -> list[bytes] | list[_Frame]:
        """The next message."""
        del flags
        if not self._inbox:
            raise _AGAIN.with_traceback(None)
        parts = self._inbox.popleft()
        return list(parts) if copy else [_Frame(each) for each in parts]

    def poll(self, timeout: int | None = None) -> int:
        """Whether a message has arrived; it never waits, because no role polls a single socket for long."""
        del timeout
        return int(self.readable())

    def arrived(self, parts: tuple[bytes, ...]) -> None:
        """A message has arrived."""
        self._inbox.append(parts)
        if self.poller is not None:
            self.poller.notify(self)

    def link_ended(self, link: Link) -> None:
        """The other side of a link is gone."""
        if self.closed or self._links.get(link.identity) is not link:
            return
        del self._links[link.identity]
        self.report(zmq.EVENT_DISCONNECTED)
        if self._connector is not None and not self.connects_once:
            self._connector.try_again(0.02)

    def opened(self, link: Link) -> None:
        """A connection is made, with this side as its client or server."""
        self._links[link.identity] = link
        if link.client is self:
            self.report(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            unsent, self._unsent = self._unsent, deque()
            for parts in unsent:
                self._send(parts)

    @property
    def is_taken(self) -> bool:
        """Whether it takes no further connection."""
        return bool(self._links) and (self._connector is not None or self.kind == zmq.PAIR)

    def _send(self, parts: tuple[bytes, ...]) -> None:
        if self.process.killed or self.closed:
            return
        link = next(iter(self._links.values()), None)
        if link is not None:
            link.send(link.server if link.client is self else link.client, parts)
        elif self._bound or self._options.get(int(zmq.IMMEDIATE)) == 1 or len(self._unsent) >= self._most_unsent:
            raise zmq.Again
        else:
            self._unsent.append(parts)


class _Monitor(NamedTuple):
    socket: SimulatedSocket
    wanted: int


class _Connector:
    """The attempts of a socket to connect."""

    def __init__(self, socket: SimulatedSocket, network: Network, endpoint: str) -> None:
        self._socket = socket
        self._network = network
        self._endpoint = endpoint

    def attempt(self) -> None:
        """Tries once; a socket that may connect again waits for its listener."""
        socket, network = self._socket, self._network
        if socket.closed or socket.is_taken:
            return
        server = network.listeners.get(self._endpoint)
        if server is None and not socket.connects_once:
            network.waiting.setdefault(self._endpoint, []).append(self.attempt)
        elif server is None:
            self._fail(_REFUSED_S)
        elif network.is_cut(socket.host, server.host):
            self._fail(_SILENT_S)
        else:
            network.world.after(network.delay_s(socket.host, server.host) * 2, lambda: self._connected(server))

    def try_again(self, within_s: float) -> None:
        """Tries again soon."""
        self._network.world.after(self._network.world.draw.uniform(0.0, within_s), self.attempt)

    def _connected(self, server: LinkEnd) -> None:
        socket, network = self._socket, self._network
        if socket.closed or socket.is_taken:
            return
        if server.closed:
            self._fail(_REFUSED_S)
        elif server.process.stopped or server.is_taken or network.is_cut(socket.host, server.host):
            self._fail(_SILENT_S)
        else:
            link = Link(network, socket, server, socket.identity or network.next_identity())
            server.opened(link)
            socket.opened(link)

    def _fail(self, after_s: float) -> None:
        if self._socket.connects_once:
            self._network.world.after(after_s, lambda: self._socket.report(zmq.EVENT_CLOSED))
        else:
            self.try_again(max(_AGAIN_S, after_s / 4))

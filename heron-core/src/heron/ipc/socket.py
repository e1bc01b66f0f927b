"""The sockets of the engine: small classes over ZeroMQ, which no module outside `heron.ipc` imports.

The queues of ZeroMQ count messages and are unlimited here. Byte credit (`heron.ipc.link`) limits the memory of links.
Only `Push` has a limited queue, because its messages may be dropped and counted.

A socket is either a file in the run directory, which only its owner may enter, or it is on the network. A socket on the
network is encrypted, and both sides have proved their keys (`heron.ipc.keys`). A network address without keys is
refused here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import zmq

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys
from heron.ipc.machine import REAL_MACHINE, Machine

__all__ = ["HANDSHAKE_S", "Channel", "Hub", "Inbox", "Push", "SocketContext"]

HANDSHAKE_S = 10.0
"""The time to prove a key: two round trips, and the wait for a busy handler. Then the connection is closed."""

_EVENT = struct.Struct("=HI")  # event and value: the first part of a monitor's message
_GONE = int(zmq.EVENT_DISCONNECTED)
_UP = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
_CONNECT_FAILED = int(zmq.EVENT_CLOSED)  # an attempt to connect has failed
_RECONNECT_MS = 20  # processes of a container start together, so the peer is there soon
_NO_RECONNECT = -1
_CONNECT_MS = 2000  # two SYN packets, of which one may be lost; the system would wait for 2 minutes
_LATE_RECONNECT_MS = 24 * 3600 * 1000  # longer than any command waits
_NETWORK = "tcp://"
_PINGS = 3  # within the time after which a silent link counts as broken
_MOST_SOCKETS = 8192  # a stream manager has three for each peer, with the monitors; ZeroMQ's default is 1,023
_BACKLOG = 4096  # the processes of all containers may connect at once; ZeroMQ's default is 100
_PUSH_LIMIT = 1000  # metrics records that wait for a metrics manager: a few seconds of a busy container


class SocketContext:
    """Opens sockets; one for each process or thread that owns sockets. Closing it closes all of them.

    A message above `max_frame_bytes` is refused before memory is taken for it, and its connection ends; -1 is no limit.
    A link on the network is broken when its other side has not answered for `link_timeout_s`.
    """

    def __init__(self, *, max_frame_bytes: int, link_timeout_s: float = 15.0, machine: Machine = REAL_MACHINE) -> None:
        self._context = machine.context()
        self._context.set(zmq.MAX_SOCKETS, _MOST_SOCKETS)
        self._max_frame_bytes = max_frame_bytes
        self._link_timeout_s = link_timeout_s
        self._held: list[
            zmq.Socket[bytes]
        ] = []  # pyzmq has weak references only, and warns of a socket that is not closed

    def channel_bound(self, endpoint: str) -> Channel:
        """Opens a channel that waits for its only peer at `endpoint`."""
        socket = self._open(zmq.PAIR)
        _bind(socket, endpoint)
        return Channel(socket)

    def channel_to(self, endpoint: str) -> Channel:
        """Opens a channel to the peer that waits at `endpoint`."""
        socket = self._open(zmq.PAIR)
        _connect(socket, endpoint)
        return Channel(socket)

    def client_of(
        self, endpoint: str, identity: bytes = b"", *, eager: bool = True, keys: ClientKeys | None = None
    ) -> Channel:
        """Opens a channel to a hub, which identifies it by `identity`, or by a generated one.

        Frames that are sent before the hub exists wait for it; without `eager` they are dropped. `keys` are for a hub
        on the network. A channel to such a hub ends with its connection, or when the first attempt to connect fails
        (`Reactor.on_disconnect`).

        Raises:
            HeronError: when the endpoint is invalid, or is on the network and `keys` is None.
        """
        socket = self._open(zmq.DEALER)
        channel = Channel(socket)
        if keys is not None and endpoint.startswith(_NETWORK):
            self._secure_client(socket, endpoint, keys)
            self._held.append(channel.monitor())  # before the connection, whose events would be missed otherwise
        socket.setsockopt(zmq.IMMEDIATE, 0 if eager else 1)
        if identity:
            socket.setsockopt(zmq.IDENTITY, identity)
        _connect(socket, endpoint)
        return channel

    def hub(self, endpoint: str) -> Hub:
        """Opens a hub at `endpoint`."""
        socket = self._open(zmq.ROUTER)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        _bind(socket, endpoint)
        return Hub(socket)

    def server(self, kind: int) -> zmq.Socket[bytes]:
        """Opens a socket on the network that is not bound yet, for `heron.ipc.guarded_hub`, which checks its peers.

        It has no key and no domain of its gate yet.
        """
        socket = self._open(kind)
        self._tune(socket)
        socket.setsockopt(zmq.BACKLOG, _BACKLOG)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        return socket

    def client(self, endpoint: str, keys: ClientKeys) -> zmq.Socket[bytes]:
        """Opens a socket for a hub on the network that is not connected yet, for `heron.ipc.watched_channel`."""
        socket = self._open(zmq.DEALER)
        self._secure_client(socket, endpoint, keys)
        # Without a reconnect interval, ZeroMQ drops unread frames together with the connection.
        socket.setsockopt(zmq.RECONNECT_IVL, _LATE_RECONNECT_MS)
        return socket

    def push_to(self, endpoint: str) -> Push:
        """Opens a one-way sender that drops and counts frames when no receiver takes them."""
        socket = self._open(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, _PUSH_LIMIT)
        _connect(socket, endpoint)
        return Push(socket)

    def inbox(self, endpoint: str) -> Inbox:
        """Opens the receiver of any number of `Push` sockets."""
        socket = self._open(zmq.PULL)
        _bind(socket, endpoint)
        return Inbox(socket)

    def close(self, linger_s: float = 0.0) -> None:
        """Closes every socket; frames that are not sent within `linger_s` are lost."""
        self._context.destroy(linger=int(linger_s * 1000))

    def _secure_client(self, socket: zmq.Socket[bytes], endpoint: str, keys: ClientKeys) -> None:
        self._tune(socket)
        # A connection is a session: after a reconnect, ZeroMQ would send frames of the old session in the new one.
        socket.setsockopt(zmq.RECONNECT_IVL, _NO_RECONNECT)
        socket.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT_MS)
        socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server_public.encode("ascii"))
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.pair.public.encode("ascii"))
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.pair.secret.encode("ascii"))
        socket.setsockopt(zmq.IPV6, "[" in endpoint)

    def _tune(self, socket: zmq.Socket[bytes]) -> None:
        """Sets the options of every socket on the network: how long the other side may be silent."""
        socket.setsockopt(zmq.HANDSHAKE_IVL, int(HANDSHAKE_S * 1000))
        socket.setsockopt(zmq.HEARTBEAT_IVL, max(1, int(self._link_timeout_s * 1000 / _PINGS)))
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, max(1, int(self._link_timeout_s * 1000)))

    def _open(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        self._held = [*(each for each in self._held if not each.closed), socket]
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, self._max_frame_bytes)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        return socket


class _Socket:
    """The base of all sockets."""

    __slots__ = ("raw",)

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        self.raw = raw

    @property
    def attendants(self) -> tuple[zmq.Socket[bytes], ...]:
        """The sockets that a reactor polls beside this one."""
        return ()

    def close(self) -> None:
        """Closes the socket; idempotent."""
        self.raw.close()


class Channel(_Socket):
    """Frames to and from one peer, in order."""

    __slots__ = ("_monitor",)

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        super().__init__(raw)
        self._monitor: zmq.Socket[bytes] | None = None

    def send(self, frame: bytes) -> None:
        """Queues a frame. Never blocks; drops the frame if no peer has ever connected."""
        try:
            self.raw.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return

    def receive(self) -> bytes | None:
        """The next frame, or None when none has arrived."""
        try:
            return self.raw.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def wait(self, timeout_s: float) -> bool:
        """Waits for a frame; False when none has arrived in time."""
        return bool(self.raw.poll(int(timeout_s * 1000)))

    def monitor(self) -> zmq.Socket[bytes]:
        """A source for the reactor: readable when the peer is gone.

        For a channel that connects once, also when it is connected, and when its attempt has failed.
        """
        if self._monitor is None:
            once = self.raw.getsockopt(zmq.RECONNECT_IVL) == _NO_RECONNECT
            self._monitor = self.raw.get_monitor_socket(_GONE | _CONNECT_FAILED | _UP if once else _GONE)
        return self._monitor

    def take_changes(self) -> tuple[bool, bool]:
        """Whether it was connected, and whether the peer is gone, since the last call."""
        connected = gone = False
        while self._monitor is not None and self._monitor.poll(0):
            event, _ = _EVENT.unpack(self._monitor.recv_multipart(zmq.NOBLOCK)[0])
            connected, gone = connected or event == _UP, gone or event != _UP
        return connected, gone

    @property
    def attendants(self) -> tuple[zmq.Socket[bytes], ...]:
        return () if self._monitor is None else (self._monitor,)

    def close(self) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is not None and not self.raw.closed:
            self.raw.disable_monitor()
            monitor.close()
        self.raw.close()


class Hub(_Socket):
    """Frames to and from many channels, each with its identity."""

    __slots__ = ()

    def receive(self) -> tuple[bytes, bytes] | None:
        """``(identity, frame)``, or None when no frame has arrived; malformed messages are skipped."""
        while True:
            try:
                parts = self.raw.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            if len(parts) == 2:
                return parts[0], parts[1]

    def send(self, identity: bytes, frame: bytes) -> bool:
        """Queues a frame; False when that peer is not connected."""
        try:
            self.raw.send_multipart((identity, frame), zmq.NOBLOCK)
        except (zmq.Again, zmq.ZMQError):
            return False
        return True

    def send_to_each(self, identities: Sequence[bytes], frame: bytes) -> list[bytes]:
        """Queues a frame for several peers, which share its memory; returns the peers that are not connected."""
        shared, gone = zmq.Frame(frame, copy=False), list[bytes]()
        for identity in identities:
            try:
                self.raw.send_multipart((identity, shared), zmq.NOBLOCK, copy=False)
            except zmq.ZMQError:
                gone.append(identity)
        return gone


class Push(_Socket):
    """One-way frames that may be dropped."""

    __slots__ = ("dropped",)

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        super().__init__(raw)
        self.dropped = 0

    def send(self, frame: bytes) -> None:
        """Queues a frame, or drops and counts it."""
        try:
            self.raw.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            self.dropped += 1


class Inbox(_Socket):
    """Receives the frames of any number of `Push` sockets."""

    __slots__ = ()

    def receive(self) -> bytes | None:
        """The next frame, or None when none has arrived."""
        try:
            return self.raw.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> None:
    if endpoint.startswith(_NETWORK):
        msg = f"cannot bind {endpoint}: only a guarded hub may listen on the network"
        raise HeronError(msg)
    _attempt(socket.bind, endpoint, "bind")


def _connect(socket: zmq.Socket[bytes], endpoint: str) -> None:
    if endpoint.startswith(_NETWORK) and socket.getsockopt(zmq.MECHANISM) != zmq.CURVE:
        msg = f"cannot connect to {endpoint}: an address on the network needs keys"
        raise HeronError(msg)
    _attempt(socket.connect, endpoint, "connect to")


def _attempt(action: Callable[[str], object], endpoint: str, verb: str) -> None:
    try:
        action(endpoint)
    except zmq.ZMQError as error:
        msg = f"cannot {verb} socket {endpoint}: {error}; does its directory exist, and is it writable?"
        raise HeronError(msg) from error

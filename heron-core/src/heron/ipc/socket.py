"""ZeroMQ behind a few small classes; nothing outside `heron.ipc` knows that it is ZeroMQ.

Queues of ZeroMQ count messages and are unlimited here: what bounds memory is the byte credit of the links above
(`heron.ipc.link`). Only `Push` is limited, because what it carries may be dropped, counted.

Sockets are files in the run directory, which only its owner may enter, or they are on the network: then they are
encrypted and both sides have proved their keys (`heron.ipc.keys`). There is no third kind: a network address without
keys is refused here.
"""

from __future__ import annotations

from collections.abc import Callable

import zmq

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys, KeyPair

__all__ = ["HANDSHAKE_S", "Channel", "Hub", "Inbox", "Push", "SocketContext"]

HANDSHAKE_S = 10.0
"""A connection that has not proved its key by then is closed: two round trips, and a handler that may be at work."""

_GONE = int(zmq.EVENT_DISCONNECTED)
_NOT_TO_BE_HAD = int(zmq.EVENT_CLOSED)  # an attempt to connect has failed
_RECONNECT_MS = 20  # processes of a container start together: who comes first looks again soon
_NO_RECONNECT = -1
_CONNECT_MS = (
    2000  # two requests, of which one may be lost: the system would wait ever longer for an answer, 2 min in all
)
_LATE_RECONNECT_MS = 24 * 3600 * 1000  # longer than anybody waits for an answer
_NETWORK = "tcp://"
_PINGS = 3  # in the time after which a silent link counts as broken
_PUSH_LIMIT = 1000  # records of metrics that wait for a metrics manager; a few seconds' worth of a busy container


class SocketContext:
    """One per process or per thread that owns sockets; closing it closes them all.

    A link on the network whose other side has not answered for `link_timeout_s` is broken; it is made anew.
    """

    def __init__(self, *, max_frame_bytes: int = -1, link_timeout_s: float = 15.0) -> None:
        self._context = zmq.Context()
        self._max_frame_bytes = max_frame_bytes
        self._link_timeout_s = link_timeout_s
        self._held: list[zmq.Socket[bytes]] = []  # the library holds them weakly, and complains of a forgotten one

    def channel_bound(self, endpoint: str) -> Channel:
        """A channel that waits for its one peer at `endpoint`."""
        socket = self._open(zmq.PAIR)
        _bind(socket, endpoint)
        return Channel(socket)

    def channel_to(self, endpoint: str) -> Channel:
        """A channel to the one that waits at `endpoint`."""
        socket = self._open(zmq.PAIR)
        _connect(socket, endpoint)
        return Channel(socket)

    def client_of(
        self, endpoint: str, identity: bytes = b"", *, eager: bool = True, keys: ClientKeys | None = None
    ) -> Channel:
        """A channel to a hub; the hub knows it by `identity`, or by one of its own making.

        What is sent before the hub is there waits for it, unless `eager` is off: then it is dropped. `keys` are for
        a hub on the network; a channel to such a hub ends with its connection, or when there is none to be had
        (`Reactor.on_disconnect`).

        Raises:
            HeronError: when the endpoint is not one, or is on the network and there are no keys.
        """
        socket = self._open(zmq.DEALER)
        if keys is not None and endpoint.startswith(_NETWORK):
            self._secure_client(socket, endpoint, keys)
        socket.setsockopt(zmq.IMMEDIATE, 0 if eager else 1)
        if identity:
            socket.setsockopt(zmq.IDENTITY, identity)
        _connect(socket, endpoint)
        return Channel(socket)

    def hub(self, endpoint: str) -> Hub:
        """A hub at `endpoint`."""
        socket = self._open(zmq.ROUTER)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        _bind(socket, endpoint)
        return Hub(socket)

    def server(self, kind: int, keys: KeyPair, domain: bytes) -> zmq.Socket[bytes]:
        """A socket on the network, not yet bound; for `heron.ipc.guarded_hub`, which sees to who may connect."""
        socket = self._open(kind)
        self._tune(socket)
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode("ascii"))
        socket.setsockopt(zmq.ZAP_DOMAIN, domain)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        return socket

    def client(self, endpoint: str, keys: ClientKeys) -> zmq.Socket[bytes]:
        """A socket for a hub on the network, not yet connected; for `heron.ipc.watched_channel`."""
        socket = self._open(zmq.DEALER)
        self._secure_client(socket, endpoint, keys)
        # Where there is to be no other connection the library forgets, with the one it had, what came and is unread.
        socket.setsockopt(zmq.RECONNECT_IVL, _LATE_RECONNECT_MS)
        return socket

    def push_to(self, endpoint: str) -> Push:
        """A one-way sender that drops, counted, when nobody takes what it sends."""
        socket = self._open(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, _PUSH_LIMIT)
        _connect(socket, endpoint)
        return Push(socket)

    def inbox(self, endpoint: str) -> Inbox:
        """The receiving end of any number of `Push`."""
        socket = self._open(zmq.PULL)
        _bind(socket, endpoint)
        return Inbox(socket)

    def close(self, linger_s: float = 0.0) -> None:
        """Closes every socket; what is not on its way within `linger_s` is lost."""
        self._context.destroy(linger=int(linger_s * 1000))

    def _secure_client(self, socket: zmq.Socket[bytes], endpoint: str, keys: ClientKeys) -> None:
        self._tune(socket)
        # A connection is a session: what the library would pass on in a new one belongs to the old.
        socket.setsockopt(zmq.RECONNECT_IVL, _NO_RECONNECT)
        socket.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT_MS)
        socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server_public.encode("ascii"))
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.pair.public.encode("ascii"))
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.pair.secret.encode("ascii"))
        socket.setsockopt(zmq.IPV6, "[" in endpoint)

    def _tune(self, socket: zmq.Socket[bytes]) -> None:
        """What any socket on the network has: limits on the time that the other side may say nothing."""
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
    """What the four have in common."""

    __slots__ = ("raw",)

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        self.raw = raw

    @property
    def attendants(self) -> tuple[zmq.Socket[bytes], ...]:
        """What a reactor polls beside it, if it was asked to."""
        return ()

    def close(self) -> None:
        """Closes it; idempotent."""
        self.raw.close()


class Channel(_Socket):
    """Frames to and from one peer, in order."""

    __slots__ = ("_monitor",)

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        super().__init__(raw)
        self._monitor: zmq.Socket[bytes] | None = None

    def send(self, frame: bytes) -> None:
        """Queues a frame; never blocks while a peer is connected, and drops it when there never was one."""
        try:
            self.raw.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return

    def receive(self) -> bytes | None:
        """The next frame, or None when there is none at the moment."""
        try:
            return self.raw.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def wait(self, timeout_s: float) -> bool:
        """Waits until there is a frame to receive; False when there was none in time."""
        return bool(self.raw.poll(int(timeout_s * 1000)))

    def monitor(self) -> zmq.Socket[bytes]:
        """A source for the reactor that becomes readable when the peer is gone, or the only attempt has failed."""
        if self._monitor is None:
            once = self.raw.getsockopt(zmq.RECONNECT_IVL) == _NO_RECONNECT
            self._monitor = self.raw.get_monitor_socket(_GONE | _NOT_TO_BE_HAD if once else _GONE)
        return self._monitor

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
    """Frames to and from many channels, each known by its identity."""

    __slots__ = ()

    def receive(self) -> tuple[bytes, bytes] | None:
        """``(identity, frame)``, or None when there is none at the moment; malformed messages are skipped."""
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
    """Takes what any number of `Push` send."""

    __slots__ = ()

    def receive(self) -> bytes | None:
        """The next frame, or None when there is none at the moment."""
        try:
            return self.raw.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> None:
    if endpoint.startswith(_NETWORK):
        msg = f"cannot bind {endpoint}: on the network only a guarded hub listens"
        raise HeronError(msg)
    _attempt(socket.bind, endpoint, "bind")


def _connect(socket: zmq.Socket[bytes], endpoint: str) -> None:
    if endpoint.startswith(_NETWORK) and socket.getsockopt(zmq.MECHANISM) != zmq.CURVE:
        msg = f"cannot connect to {endpoint}: it is on the network, and there are no keys for it"
        raise HeronError(msg)
    _attempt(socket.connect, endpoint, "connect to")


def _attempt(action: Callable[[str], object], endpoint: str, verb: str) -> None:
    try:
        action(endpoint)
    except zmq.ZMQError as error:
        msg = f"cannot {verb} socket {endpoint}: {error}; is its directory there and writable?"
        raise HeronError(msg) from error

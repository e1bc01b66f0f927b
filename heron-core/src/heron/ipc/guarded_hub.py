"""A hub on the network: it accepts only peers that have proved a known key, and counts the refused ones.

Without a handler of the ZeroMQ Authentication Protocol (RFC 27), CURVE accepts every peer that has the server's public
key. The gate is that handler, for the one guarded hub of its context. It runs on the event loop of the hub's owner. It
is bound before the hub is, and the hub is told to refuse every peer while there is no handler.

While keys rotate, a hub has a port for each set of keys. libzmq keeps the server key and the domain of each port as
they were when it was bound, so the gate knows by the domain for which set a peer asks.

ZeroMQ has one limit for messages, and it holds also before a peer has proved its key. A stranger could thus fill
`MAXMSGSIZE` bytes of memory with each connection, so the gate ends connections that send more than a handshake.
"""

from __future__ import annotations

import errno
import resource
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

import zmq
from zmq.utils import z85

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.keys import ClientKind, ServerKeys
from heron.ipc.network import listen_endpoint
from heron.ipc.socket import HANDSHAKE_S, Hub, SocketContext

__all__ = ["Gate", "GuardedHub", "Handshakes", "UnprovedPeers", "open_guarded_hub"]

_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_MONITOR_ENDPOINT = "inproc://gate.monitor"
_ZAP_VERSION = b"1.0"
_LOOK_AT_MOST = 250  # connections: 1 ms for each `GuardedHub.LOOK_S`, on a thread that may route data
_GROWTH_BYTES = 4 * 1024 * 1024  # of the process between two looks, of which a stranger may be the cause
_HANDSHAKE_BYTES = 64 * 1024  # the greeting, HELLO and INITIATE have some hundreds
_UNPROVED_BYTES = 256  # greeting and WELCOME have 234 bytes; READY, which only a proved peer gets, comes on top
_TCP_BYTES = struct.Struct("=120xQQ")  # `struct tcp_info` of Linux: tcpi_bytes_acked, tcpi_bytes_received
_GONE = {errno.EBADF, errno.ENOTSOCK, errno.ENOTCONN, errno.EOPNOTSUPP, errno.ENOPROTOOPT}  # no TCP connection
_EVENT = struct.Struct("=HI")  # event and value: the first part of a monitor's message
_MONITORED = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


def open_guarded_hub(sockets: SocketContext, host: str, keys: ServerKeys, known_as: str = "") -> GuardedHub:
    """Opens a hub at a free port of `host` for peers that have one of the known keys; at most one per context.

    The hub accepts no peer before `Reactor.guard` is called. If peers reach the hub at another address than `host`,
    `known_as` is that address and becomes part of its endpoint; `host` may then be the unspecified address.

    Raises:
        HeronError: when `host` is not an address, interface or name of this machine.
    """
    endpoint = listen_endpoint(host, anywhere=bool(known_as))
    raw = sockets.server(zmq.ROUTER)
    gate = Gate(raw, monotonic_s)
    raw.setsockopt(zmq.ROUTER_MANDATORY, 1)
    raw.setsockopt(zmq.IPV6, "[" in endpoint)
    hub = GuardedHub(raw, gate, endpoint)
    hub.set_keys((keys,))
    if known_as not in {"", host}:
        port = hub.endpoint.rpartition(":")[2]
        hub.endpoint = f"tcp://[{known_as}]:{port}" if ":" in known_as else f"tcp://{known_as}:{port}"
    return hub


class GuardedHub(Hub):
    """A hub on the network whose peers have all proved a key; `endpoint` is the one of its oldest set of keys."""

    LOOK_S = 0.05
    """How often to call `look`. A stranger sends 100 MiB in this time on one machine, and far less over a network."""

    __slots__ = ("_listens_at", "endpoint", "endpoints", "gate")

    def __init__(self, raw: zmq.Socket[bytes], gate: Gate, listens_at: str) -> None:
        super().__init__(raw)
        self.gate = gate
        self._listens_at = listens_at
        self.endpoint = ""
        self.endpoints: dict[str, str] = {}
        """The endpoints by the server's public key, in the order of the sets."""

    def set_keys(self, sets: Sequence[ServerKeys]) -> None:
        """Listens at a port for each set of keys, and at no other port: connections to others end.

        Raises:
            HeronError: when it cannot listen at another port; the ports of before stay.
        """
        former, present = self.endpoints, {keys.pair.public: keys for keys in sets}
        self.gate.set_keys((*self.gate.sets, *sets))
        bound = {public: former.get(public) or self._bind(keys) for public, keys in present.items()}
        for public in former.keys() - present.keys():
            self.raw.unbind(former[public])
        self.gate.set_keys(sets)
        self.endpoints = bound
        self.endpoint = next(iter(bound.values()))

    def _bind(self, keys: ServerKeys) -> str:
        self.raw.setsockopt(zmq.CURVE_SECRETKEY, keys.pair.secret.encode("ascii"))
        self.raw.setsockopt(zmq.ZAP_DOMAIN, keys.pair.public.encode("ascii"))
        try:
            self.raw.bind(self._listens_at)
        except zmq.ZMQError as error:
            msg = f"heron.network.host: cannot listen at {self._listens_at}: {error}; is it an address of this machine?"
            raise HeronError(msg) from error
        return self.raw.getsockopt_string(zmq.LAST_ENDPOINT, "ascii").rstrip("\0")

    def receive_from(self) -> tuple[bytes, bytes, ClientKind] | None:
        """``(identity, frame, owner of the proved key)``, or None when no frame has arrived."""
        while True:
            try:
                parts = self.raw.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return None
            if len(parts) == 2:
                identity, frame = parts
                return identity.bytes, frame.bytes, ClientKind(frame.get("User-Id"))

    @property
    def attendants(self) -> tuple[zmq.Socket[bytes], ...]:
        return self.gate.requests, self.gate.events

    def serve(self) -> bool:
        """Answers the requests of connecting peers; `Reactor.guard` calls it when a request or event arrives.

        Returns whether peers are in a handshake, so that `look` must be called every `LOOK_S`.
        """
        self.gate.answer()
        self.gate.count()
        return len(self.gate.unproved) > 0

    def look(self) -> bool:
        """Ends connections of peers that send too much in their handshake; whether to look again after `LOOK_S`."""
        self.gate.unproved.end_large()
        return len(self.gate.unproved) > 0

    def close(self) -> None:
        if not self.raw.closed:
            self.raw.disable_monitor()
        self.gate.close()
        self.raw.close()


class Gate:
    """Answers for each connection whether its key is known, and counts the outcomes of connections."""

    def __init__(self, raw: zmq.Socket[bytes], now_s: Callable[[], float]) -> None:
        """For a socket that is not bound yet. It knows no key before `set_keys`."""
        context = raw.context
        self.sets: tuple[ServerKeys, ...] = ()
        self._known: dict[tuple[bytes, bytes], ClientKind] = {}
        self._now_s = now_s
        self._handshakes = Handshakes(HANDSHAKE_S)
        self.unproved = UnprovedPeers()
        self.requests: zmq.Socket[bytes] = context.socket(zmq.REP)
        self.requests.setsockopt(zmq.LINGER, 0)
        self.requests.bind(_ZAP_ENDPOINT)
        # Unlimited: a full monitor socket would block the I/O thread of ZeroMQ, and all connections with it.
        self.events: zmq.Socket[bytes] = context.socket(zmq.PAIR)
        self.events.setsockopt(zmq.RCVHWM, 0)
        self.events.setsockopt(zmq.LINGER, 0)
        raw.monitor(_MONITOR_ENDPOINT, _MONITORED)
        self.events.connect(_MONITOR_ENDPOINT)

    def set_keys(self, sets: Sequence[ServerKeys]) -> None:
        """From now on, it accepts the clients of these sets, each at the port of its set."""
        self.sets = tuple(sets)
        self._known = {
            (keys.pair.public.encode("ascii"), z85.decode(public)): kind
            for keys in sets
            for public, kind in keys.clients.items()
        }

    def answer(self) -> None:
        """Answers every request that has arrived."""
        while True:
            try:
                request = self.requests.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.requests.send_multipart(self._verdict(request))

    def count(self) -> None:
        """Counts every event that has arrived."""
        while True:
            try:
                parts = self.events.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._count(*_EVENT.unpack(parts[0]))

    def refused(self) -> dict[str, int]:
        """The number of refused connections by reason, as far as their events were counted."""
        return self._handshakes.refused(self._now_s())

    def close(self) -> None:
        """Closes its sockets; idempotent."""
        self.requests.close()
        self.events.close()

    def _verdict(self, request: list[bytes]) -> list[bytes]:
        # version, request id, domain, address, routing id, mechanism, credentials
        request_id = request[1] if len(request) > 1 else b""
        kind: ClientKind | None = None
        if len(request) == 7 and request[0] == _ZAP_VERSION and request[5] == b"CURVE":
            kind = self._known.get((request[2], request[6]))
        if kind is None:
            return [_ZAP_VERSION, request_id, b"400", b"unknown key", b"", b""]
        return [_ZAP_VERSION, request_id, b"200", b"OK", kind.value.encode("ascii"), b""]

    def _count(self, event: int, value: int) -> None:
        handshakes = self._handshakes
        if event == zmq.EVENT_ACCEPTED:
            handshakes.accepted(value, self._now_s())
            self.unproved.accepted(value)
        elif event == zmq.EVENT_DISCONNECTED:
            handshakes.disconnected(value)
            self.unproved.disconnected(value)
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            handshakes.succeeded()
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            handshakes.failed("unknown-key")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            handshakes.failed("protocol")
        else:
            handshakes.failed("unfinished")


class UnprovedPeers:
    """Ends connections that have sent more than a handshake without having proved a key.

    The kernel says what a connection has sent and received. Only a peer that has proved its key gets the last message
    of a handshake, and cannot send a frame before it has it. No event of ZeroMQ says which connection that is.
    """

    def __init__(self, at_once: int = _LOOK_AT_MOST, most_memory_bytes: Callable[[], int] | None = None) -> None:
        """`most_memory_bytes` gives the most memory that the process has had so far."""
        self._at_once = at_once
        self._most_memory_bytes = most_memory_bytes or _most_memory_bytes
        self._had_bytes = self._most_memory_bytes()
        self._descriptors: dict[int, None] = {}  # in the order in which it looks at them

    def __len__(self) -> int:
        """How many connections it watches."""
        return len(self._descriptors)

    def accepted(self, descriptor: int) -> None:
        """Begins to watch a connection."""
        self._descriptors[descriptor] = None

    def disconnected(self, descriptor: int) -> None:
        """Forgets a connection that is closed."""
        self._descriptors.pop(descriptor, None)

    def end_large(self) -> None:
        """Looks at the next connections, at most `at_once`, and ends those that have sent too much.

        If the process has grown, it looks at all: idle connections must not hide one that fills the memory.
        """
        before, self._had_bytes = self._had_bytes, self._most_memory_bytes()
        has_grown = self._had_bytes - before > _GROWTH_BYTES
        for descriptor in list(islice(self._descriptors, None if has_grown else self._at_once)):
            del self._descriptors[descriptor]
            is_in_handshake = _end_if_large(descriptor)
            if is_in_handshake:
                self._descriptors[descriptor] = None


def _most_memory_bytes() -> int:
    """Needs no descriptor, which strangers may have used up."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _end_if_large(descriptor: int) -> bool:
    """Ends a connection that has sent too much; returns whether to go on watching it: its peer can still prove a key.

    ZeroMQ may have closed it, and another file may have its number.

    It takes no descriptor of its own: a stranger could have used them up.
    """
    peer = None
    try:
        peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=descriptor)
        info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_BYTES.size)
        taken_bytes, sent_bytes = _TCP_BYTES.unpack(info)
        if taken_bytes > _UNPROVED_BYTES:
            return False
        if sent_bytes > _HANDSHAKE_BYTES:
            peer.shutdown(socket.SHUT_RDWR)
            return False
    except OSError as error:
        return error.errno not in _GONE  # that it is closed, an event will say
    finally:
        if peer is not None:
            peer.detach()  # ZeroMQ closes it
    return True


class Handshakes:
    """Counts the connections to a socket on the network by their outcome. Pure; times are monotonic seconds.

    ZeroMQ reports when a connection is accepted and closed, with its file descriptor. It reports the end of a handshake
    without naming the connection, and for a peer that does not speak ZeroMQ it reports no handshake at all. Such
    connections are the difference: accepted, not succeeded, not failed for a named reason, and no longer in a
    handshake. A connection that is open and younger than the longest handshake may still be in one. It is counted when
    it is closed or older.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._accepted = 0
        self._succeeded = 0
        self._failed: Counter[str] = Counter()
        self._foreign = 0
        self._young: dict[int, float] = {}

    def accepted(self, descriptor: int, now_s: float) -> None:
        """Counts a new connection."""
        self._accepted += 1
        self._young[descriptor] = now_s

    def succeeded(self) -> None:
        """Counts a handshake in which the peer proved its key."""
        self._succeeded += 1

    def failed(self, reason: str) -> None:
        """Counts a handshake that failed."""
        self._failed[reason] += 1

    def disconnected(self, descriptor: int) -> None:
        """Notes that a connection is closed."""
        self._young.pop(descriptor, None)

    def refused(self, now_s: float) -> dict[str, int]:
        """The number of refused connections by reason; the peers of ``foreign`` do not speak the protocol."""
        self._young = {each: at_s for each, at_s in self._young.items() if now_s - at_s < self._longest_s}
        open_or_in = self._succeeded + self._failed.total() + len(self._young)
        self._foreign = max(self._foreign, self._accepted - open_or_in)
        reasons = dict.fromkeys(("unknown-key", "protocol", "unfinished"), 0) | self._failed
        return reasons | {"foreign": self._foreign}

"""A hub on the network, where only those are heard who have proved a key."""

from __future__ import annotations

import zmq

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.gate import DOMAIN, Gate
from heron.ipc.keys import ServerKeys, Speaker
from heron.ipc.network import listen_endpoint
from heron.ipc.socket import Hub, SocketContext

__all__ = ["GuardedHub", "open_guarded_hub"]


def open_guarded_hub(sockets: SocketContext, host: str, keys: ServerKeys, known_as: str = "") -> GuardedHub:
    """A hub at any free port of `host`, for those who have one of the keys it knows; one per context.

    Nobody gets in before `Reactor.guard` answers for it. Where others reach it at another address than that at which it
    listens, `known_as` is that one, and its endpoint names it; `host` may be the unspecified address then.

    Raises:
        HeronError: when `host` is no address, interface or name of this machine.
    """
    endpoint = listen_endpoint(host, anywhere=bool(known_as))
    socket = sockets.server(zmq.ROUTER, keys.pair, DOMAIN)
    gate = Gate(socket, keys, monotonic_s)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.IPV6, "[" in endpoint)
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        msg = f"heron.network.host: cannot listen at {endpoint}: {error}; is {host!r} this machine?"
        raise HeronError(msg) from error
    hub = GuardedHub(socket, gate)
    if known_as not in {"", host}:
        port = hub.endpoint.rpartition(":")[2]
        hub.endpoint = f"tcp://[{known_as}]:{port}" if ":" in known_as else f"tcp://{known_as}:{port}"
    return hub


class GuardedHub(Hub):
    """A hub on the network: whoever it hears has proved a key."""

    __slots__ = ("endpoint", "gate")

    def __init__(self, raw: zmq.Socket[bytes], gate: Gate) -> None:
        super().__init__(raw)
        self.gate = gate
        self.endpoint: str = raw.getsockopt_string(zmq.LAST_ENDPOINT, "ascii").rstrip("\0")

    def receive_from(self) -> tuple[bytes, bytes, Speaker] | None:
        """``(identity, frame, whose key it proved)``, or None when there is nothing at the moment."""
        while True:
            try:
                parts = self.raw.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return None
            if len(parts) == 2:
                identity, frame = parts
                return identity.bytes, frame.bytes, Speaker(frame.get("User-Id"))

    @property
    def attendants(self) -> tuple[zmq.Socket[bytes], ...]:
        return self.gate.requests, self.gate.events

    def serve(self) -> None:
        """Answers who is at the gate; `Reactor.guard` calls it when there is something to do."""
        self.gate.answer()
        self.gate.count()

    def close(self) -> None:
        if not self.raw.closed:
            self.raw.disable_monitor()
        self.gate.close()
        self.raw.close()

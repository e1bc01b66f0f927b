"""The simulated network: links whose delays, cuts and ends are events.

A link keeps the order of its messages, as a connection does; two links do not.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import zmq  # noqa: TID251 - it simulates ZeroMQ

from heron.ipc.frames.frame import FrameKind

if TYPE_CHECKING:
    from heron_testing.seeded.world import Process, World

__all__ = ["Link", "LinkEnd", "Network"]

_KINDS = {int(each): each.name for each in FrameKind}


class LinkEnd(Protocol):
    """A socket, as its links see it: `heron_testing.seeded.sockets.SimulatedSocket`."""

    host: str
    kind: int
    closed: bool
    process: Process

    @property
    def is_taken(self) -> bool:
        """Whether it takes no further connection."""
        ...

    def arrived(self, parts: tuple[bytes, ...]) -> None:
        """A message has arrived."""
        ...

    def opened(self, link: Link) -> None:
        """A connection is made."""
        ...

    def link_ended(self, link: Link) -> None:
        """The other side of a link is gone."""
        ...


class Network:
    """All listeners and links. `cut` pairs of machines do not reach each other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.listeners: dict[str, LinkEnd] = {}
        self.waiting: dict[str, list[Callable[[], object]]] = {}
        self.links: dict[Link, None] = {}
        self.cuts: set[frozenset[str]] = set()
        self.slow: dict[str, float] = {}
        self.sent_bytes: Counter[str] = Counter()
        """The data that arrived, by the process that sent it."""
        self.link_timeout_s = 15.0
        self._ports = itertools.count(10_000)
        self._identities = itertools.count(1)

    def next_port(self) -> int:
        """A free port."""
        return next(self._ports)

    def next_identity(self) -> bytes:
        """What a router calls a peer without a name."""
        return b"\0" + struct.pack(">I", next(self._identities))

    def listen(self, endpoint: str, socket: LinkEnd) -> None:
        """Connects those that wait for this endpoint."""
        self.listeners[endpoint] = socket
        for attempt in self.waiting.pop(endpoint, []):
            self.world.after(self.world.draw.uniform(0.0, 0.02), attempt)

    def delay_s(self, one: str, other: str) -> float:
        """How long a message is under way between two machines."""
        chance = self.world.draw.random
        delay_s = 2e-5 + 1.3e-4 * chance() if one == other else 8e-5 + 7.2e-4 * chance()
        if chance() < 0.01:
            delay_s += 1e-3 + 3e-2 * chance()
        if self.slow and one != other:
            delay_s += max(self.slow.get(one, 0.0), self.slow.get(other, 0.0)) * chance()
        return delay_s

    def is_cut(self, one: str, other: str) -> bool:
        """Whether two machines do not reach each other."""
        return bool(self.cuts) and one != other and frozenset((one, other)) in self.cuts

    def cut(self, one: str, other: str) -> None:
        """Cuts two machines off; their links break if this lasts for the timeout of links."""
        pair = frozenset((one, other))
        if pair in self.cuts:
            return
        self.cuts.add(pair)
        self.world.note(f"cut {one} {other}")
        self.world.after(self.link_timeout_s, lambda: self._break_if_cut(pair))

    def heal(self, one: str, other: str) -> None:
        """Ends a cut."""
        pair = frozenset((one, other))
        if pair not in self.cuts:
            return
        self.cuts.discard(pair)
        self.world.note(f"healed {one} {other}")
        for link in tuple(self.links):
            if link.pair == pair:
                link.flow()

    def reset(self, one: str, other: str) -> None:
        """Breaks all connections between two machines."""
        pair = frozenset((one, other))
        self.world.note(f"reset {one} {other}")
        for link in tuple(self.links):
            if link.pair == pair:
                link.break_off()

    def _break_if_cut(self, pair: frozenset[str]) -> None:
        if pair in self.cuts:
            for link in tuple(self.links):
                if link.pair == pair:
                    link.break_off()


class Link:
    """A connection of two sockets; `client` has opened it."""

    def __init__(self, network: Network, client: LinkEnd, server: LinkEnd, identity: bytes) -> None:
        self._network = network
        self.client = client
        self.server = server
        self.identity = identity
        self.is_remote = client.host != server.host
        self.pair = frozenset((client.host, server.host))
        self.broken = False
        self._last_ns = {client: 0, server: 0}  # by receiver
        self._held: dict[LinkEnd, deque[Callable[[], object]]] = {client: deque(), server: deque()}
        network.links[self] = None

    def send(self, to: LinkEnd, parts: Sequence[bytes]) -> None:
        """Sends a message."""
        self._pass(to, partial(self._deliver, to, parts))

    def flow(self) -> None:
        """Sends what a cut has held back."""
        for to, held in self._held.items():
            calls = tuple(held)
            held.clear()
            for call in calls:
                self._pass(to, call)

    def end(self, at: LinkEnd, *, lost: bool) -> None:
        """One side has closed it: the other one learns so behind the last message, or loses some of them."""
        if self.broken:
            return
        other = self.client if at is self.server else self.server
        if lost:
            last_ns, world = self._last_ns[other], self._network.world
            self._last_ns[other] = min(last_ns, world.now_ns + int(world.draw.random() * (last_ns - world.now_ns)))
            limit = self._last_ns[other]
            world.at(max(limit, world.now_ns), self._drop_rest(other))
        else:
            self._pass(other, lambda: self._ended(at))

    def break_off(self) -> None:
        """It is broken for both sides; what is under way is lost."""
        if self.broken:
            return
        self.broken = True
        self._network.links.pop(self, None)
        for side in (self.client, self.server):
            delay_s = self._network.world.draw.uniform(0.0, 0.01)
            self._network.world.after(delay_s, partial(self._tell_end, side))

    def _drop_rest(self, other: LinkEnd) -> Callable[[], object]:
        def drop() -> None:
            if not self.broken:
                self.broken = True
                self._network.links.pop(self, None)
                self._tell_end(other)

        return drop

    def _pass(self, to: LinkEnd, call: Callable[[], object]) -> None:
        network, world = self._network, self._network.world
        if self.is_remote and network.is_cut(self.client.host, self.server.host):
            self._held[to].append(call)
            return
        at_ns = world.now_ns + int(network.delay_s(self.client.host, self.server.host) * 1e9)
        at_ns = self._last_ns[to] = max(at_ns, self._last_ns[to] + 1)
        world.at(at_ns, call)

    def _deliver(self, to: LinkEnd, parts: Sequence[bytes]) -> None:
        if self.broken or to.closed:
            return
        source = self.client if to is self.server else self.server
        frame = parts[-1]
        kind = _KINDS.get(frame[1], "") if len(frame) > 1 else ""
        size = len(frame) if kind in ("DATA", "ACK") else 0
        if kind == "DATA":
            self._network.sent_bytes[source.process.name] += size
        self._network.world.note(f"{source.process.name} > {to.process.name} {kind} {size}")
        to.arrived((self.identity, *parts) if to.kind == zmq.ROUTER else tuple(parts))

    def _ended(self, at: LinkEnd) -> None:
        if self.broken:
            return
        self.broken = True
        self._network.links.pop(self, None)
        self._tell_end(self.client if at is self.server else self.server)

    def _tell_end(self, side: LinkEnd) -> None:
        side.process.deliver(lambda: side.link_ended(self))

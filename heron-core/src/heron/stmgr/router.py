"""Where segments go: from a frame into the outlets of the tasks they are addressed to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from heron.errors import RemoteProtocolError
from heron.ipc.frame import FRAME_HEADER_BYTES, SEGMENT_KIND_AT, SegmentKind, parse_segment, segment_routes
from heron.stmgr.end_markers import EndMarkers
from heron.stmgr.outlet import HeldRelease, Outlet, Releasable, Segment, Watermarks

__all__ = ["AckSink", "PeerProducers", "Router"]

_FIRST_OF_ACKS = int(SegmentKind.ROOTS)
_SMALL_BYTES = 1024


class PeerProducers(Protocol):
    """A peer's link, as the router sees it: a producer for each destination task."""

    def receive(self, task_id: int, size_bytes: int) -> Releasable:
        """The producer for that task, after counting `size_bytes` as received."""
        ...


class AckSink(Protocol):
    """Where the segments about roots go: to a local ledger, or to the stream manager that has it."""

    def take(self, data: bytes, start: int, end: int, task_id: int) -> None:
        """Takes the segment at `start`, about roots of `task_id`."""
        ...


class Router:
    """Puts segments into outlets and decides when the room they take is released to their producers."""

    def __init__(self, acks: AckSink, marks: Watermarks) -> None:
        self._acks = acks
        self._marks = marks
        self._holding: set[int] = set()
        self._congested: frozenset[int] = frozenset()
        self._planned = False
        self.outlets: dict[int, Outlet] = {}
        self.touched: set[int] = set()
        self.end_markers = EndMarkers()
        self.unroutable_segments = 0
        self.drops = False
        """Whether tuples for a congested task are dropped and counted, instead of held (``topology.droptuples…``)."""
        self.dropped_tuples: dict[int, int] = {}

    def set_tasks(self, task_ids: Iterable[int]) -> tuple[Outlet, ...]:
        """Makes outlets for the tasks of a plan; returns those of tasks that are gone, with what waited in them."""
        wanted = set(task_ids)
        self._planned = True
        for task_id in wanted - self.outlets.keys():
            self.outlets[task_id] = self._outlet(task_id)
        gone = tuple(self.outlets.pop(task_id) for task_id in self.outlets.keys() - wanted)
        for outlet in gone:
            self.unroutable_segments += len(outlet.queue)
            outlet.congested = outlet.full = False
            self._congested -= {outlet.task_id}
            self._pass_on(outlet)
        return gone

    def route(self, data: bytes, producer: Releasable) -> None:
        """Routes a frame of a local instance; its room is released as a whole.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame; what came before it was routed.
        """
        full: list[Outlet] = []
        for start, end, destinations in segment_routes(data):
            if data[start + SEGMENT_KIND_AT] >= _FIRST_OF_ACKS:
                self._acks.take(data, start, end, destinations[0])
                continue
            segment = _cut(data, start, end)
            for task_id in destinations:
                outlet = self._put(task_id, segment)
                if outlet is not None and outlet.full:
                    full.append(outlet)
            self.end_markers.notice(data, start, segment, destinations)
        self._settle(HeldRelease(producer, len(data) - FRAME_HEADER_BYTES, full))

    def route_from_peer(self, data: bytes, producers: PeerProducers) -> None:
        """Routes a frame of a peer; room is released per destination task.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame; what came before it was routed.
        """
        for start, end, destinations in segment_routes(data):
            segment = _cut(data, start, end)
            for task_id in destinations:
                outlet = self._put(task_id, segment)
                full = [outlet] if outlet is not None and outlet.full else []
                self._settle(HeldRelease(producers.receive(task_id, end - start), end - start, full))
            self.end_markers.notice(data, start, segment, destinations)

    def route_acks(self, data: bytes) -> None:
        """Hands on an ack frame of an instance or a peer.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame, or is of another kind.
        """
        for start, end, destinations in segment_routes(data):
            if data[start + SEGMENT_KIND_AT] < _FIRST_OF_ACKS or not destinations:
                msg = f"segment of kind {data[start + SEGMENT_KIND_AT]} in an ack frame"
                raise RemoteProtocolError(msg)
            self._acks.take(data, start, end, destinations[0])

    def resend_end_markers(self, task_id: int) -> None:
        """Puts the END markers for a task behind what waits for it: its session is new."""
        for marker in self.end_markers.of(task_id):
            self._put(task_id, marker)

    def release_held(self) -> None:
        """Passes on what outlets held back, where there is room again."""
        for task_id in tuple(self._holding):
            outlet = self.outlets.get(task_id)
            if outlet is None or not outlet.full:
                self._holding.discard(task_id)
                if outlet is not None:
                    self._pass_on(outlet)

    def culprits(self) -> frozenset[int]:
        """The tasks whose outlets are congested."""
        return frozenset(task_id for task_id, outlet in self.outlets.items() if outlet.congested)

    def culprits_after(self, touched: set[int]) -> frozenset[int]:
        """The same after a round in which the outlets of these tasks alone have changed: a plan may have thousands."""
        now = {task_id for task_id in touched if task_id in self.outlets and self.outlets[task_id].congested}
        if now != self._congested & touched:
            self._congested = self._congested - touched | now
        return self._congested

    def waits_for(self, producer: Releasable) -> tuple[int, ...]:
        """The tasks whose full outlets keep credit back from that producer."""
        holding = (self.outlets[task_id] for task_id in sorted(self._holding & self.outlets.keys()))
        return tuple(outlet.task_id for outlet in holding if outlet.holds(producer))

    def forget(self, producer: Releasable) -> None:
        """A producer is gone."""
        for outlet in self.outlets.values():
            outlet.forget(producer)

    def _put(self, task_id: int, segment: Segment) -> Outlet | None:
        outlet = self.outlets.get(task_id)
        if outlet is None:
            if self._planned:
                self.unroutable_segments += 1
                return None
            # A restarted stream manager hears from instances and peers before it has a plan: that waits.
            outlet = self.outlets[task_id] = self._outlet(task_id)
        if outlet.congested and self.drops and segment[SEGMENT_KIND_AT] == SegmentKind.TUPLES:
            self.dropped_tuples[task_id] = self.dropped_tuples.get(task_id, 0) + parse_segment(bytes(segment), 0).rows
            return None
        outlet.put(segment)
        self.touched.add(task_id)
        return outlet

    def _outlet(self, task_id: int) -> Outlet:
        return Outlet(task_id, self._marks)

    def _pass_on(self, outlet: Outlet) -> None:
        for release in outlet.unheld():
            self._settle(release)

    def _settle(self, release: HeldRelease) -> None:
        """Releases the room, or hands the release to an outlet that is full."""
        while release.others:
            outlet = release.others.pop()
            if outlet.full:
                outlet.hold(release)
                self._holding.add(outlet.task_id)
                return
        release.producer.release(release.size_bytes)


def _cut(data: bytes, start: int, end: int) -> Segment:
    """A segment of a frame: by reference where it is most of the frame, else copied, so as not to pin the whole.

    A small one is copied too: a reference to it takes more room than its bytes do.
    """
    if end - start >= _SMALL_BYTES and 2 * (end - start) >= len(data):
        return memoryview(data)[start:end]
    return data[start:end]

"""Where segments go: from a frame into the outlets of the tasks that they are addressed to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    SEGMENT_KIND_AT,
    Marker,
    SegmentKind,
    parse_segment,
    segment_plan,
    segment_routes,
)
from heron.ipc.frames.trace_field import frame_is_traced, traced_copy
from heron.spi.tracing import StampKind
from heron.stmgr.outlet import HeldRelease, Outlet, Producer, Segment, Watermarks

__all__ = ["AckDestination", "LastMarkers", "PeerProducers", "Router"]

_ABOUT_ROOTS = frozenset(map(int, (SegmentKind.ROOTS, SegmentKind.ACK, SegmentKind.FAIL, SegmentKind.CAUSE)))
_MARKER = int(SegmentKind.MARKER)
_KEPT = (Marker.END, Marker.PLAN)
_TUPLES = int(SegmentKind.TUPLES)
_LAST_DELIVERED = _MARKER  # the kinds from 1 to this one go to tasks
_SMALL_BYTES = 1024
_TASKS_BEFORE_PLAN = 0xFFFF
_TASKS_TO_COME = 1024  # markers may come before the plan that has their tasks; invented tasks must fill no memory


class PeerProducers(Protocol):
    """A peer's link, as the router sees it: one producer for each destination task."""

    def receive(self, task_id: int, size_bytes: int) -> Producer:
        """Counts `size_bytes` as received for a task and returns the producer for it."""
        ...


class AckDestination(Protocol):
    """The destination of segments about roots: a local ledger, or the stream manager that has it."""

    def take(self, data: bytes, start: int, end: int, task_id: int) -> None:
        """Takes the segment of `data` from `start` to `end`, about roots of `task_id`.

        Raises:
            RemoteProtocolError: when the segment is garbled.
        """
        ...


class LastMarkers:
    """The markers that have passed through this stream manager: the last of each kind, by destination and source.

    A task that restarts must receive the markers of its upstream tasks again, behind all data that still waits for it.
    A repeated marker has no effect: the receiver counts source tasks, not markers.
    """

    __slots__ = ("_by_destination", "_most")

    def __init__(self) -> None:
        self._by_destination: dict[int, dict[tuple[int, int], bytes]] = {}
        self._most = len(_KEPT) * (_TASKS_BEFORE_PLAN + _TASKS_TO_COME)

    def notice(self, data: bytes, start: int, segment: Segment, destinations: tuple[int, ...]) -> None:
        """Remembers the segment at `start` of a frame if it is a marker of END or PLAN."""
        if data[start + SEGMENT_KIND_AT] != _MARKER:
            return
        head = parse_segment(data, start)
        for task_id in destinations if head.stream in _KEPT else ():
            markers = self._by_destination.setdefault(task_id, {})
            if len(markers) < self._most:
                markers[head.source_task, head.stream] = bytes(segment)

    def of(self, task_id: int) -> tuple[bytes, ...]:
        """The markers for this task, in the order in which they passed."""
        return tuple(self._by_destination.get(task_id, {}).values())

    def keep(self, task_ids: Collection[int]) -> None:
        """Forgets the markers for other tasks and from other tasks."""
        self._most = len(_KEPT) * (len(task_ids) + _TASKS_TO_COME)
        self._by_destination = {
            task_id: {key: marker for key, marker in markers.items() if key[0] in task_ids}
            for task_id, markers in self._by_destination.items()
            if task_id in task_ids
        }


class Router:
    """Puts segments into outlets and gives credit back to the producers of segments."""

    def __init__(self, acks: AckDestination, marks: Watermarks) -> None:
        self._acks = acks
        self._marks = marks
        self._holding: set[int] = set()
        self._congested: frozenset[int] = frozenset()
        self._has_plan = False
        self.outlets: dict[int, Outlet] = {}
        self._changed: set[int] = set()
        self.markers = LastMarkers()
        self.unroutable_segments = 0
        self.drops = False
        """Whether tuples for a congested task are dropped and counted (``topology.droptuples.upon.backpressure``)."""
        self.dropped_tuples: dict[int, int] = {}
        self.valid_since = 0
        """Segments of older plans are from before the last restore: nothing is lost with them."""

    def set_tasks(self, task_ids: Iterable[int]) -> tuple[Outlet, ...]:
        """Makes outlets for the tasks of a plan; returns the outlets of tasks that left it, with their segments."""
        wanted = set(task_ids)
        self._has_plan = True
        for task_id in wanted - self.outlets.keys():
            self.outlets[task_id] = self._outlet(task_id)
        self.markers.keep(wanted)
        gone = tuple(self.outlets.pop(task_id) for task_id in self.outlets.keys() - wanted)
        for outlet in gone:
            self.unroutable_segments += sum(map(self._matters, outlet.queue))
            outlet.congested = outlet.full = False
            self._congested -= {outlet.task_id}
            self._release_all_of(outlet)
        return gone

    def route(self, data: bytes, producer: Producer) -> None:
        """Routes a frame of a local instance; its credit is released as a whole.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame; the segments before it were routed.
        """
        full: list[Outlet] = []
        traced = frame_is_traced(data)
        for start, end, destinations in segment_routes(data):
            if not 0 < data[start + SEGMENT_KIND_AT] <= _LAST_DELIVERED:
                self._take_acks(data, start, end, destinations)
                continue
            segment = _cut(data, start, end) if not traced else _cut_traced(data, start, end, StampKind.ROUTED)
            for task_id in destinations:
                outlet = self._put(task_id, segment)
                if outlet is not None and outlet.full:
                    full.append(outlet)
            self.markers.notice(data, start, segment, destinations)
        self._release(HeldRelease(producer, len(data) - FRAME_HEADER_BYTES, full))

    def route_from_peer(self, data: bytes, producers: PeerProducers) -> None:
        """Routes a frame of a peer; credit is released for each destination task.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame; the segments before it were routed.
        """
        traced = frame_is_traced(data)
        for start, end, destinations in segment_routes(data):
            if not 0 < data[start + SEGMENT_KIND_AT] <= _LAST_DELIVERED:
                msg = f"segment of kind {data[start + SEGMENT_KIND_AT]} in a data frame of a peer"
                raise RemoteProtocolError(msg, Violation.KIND)
            segment = _cut(data, start, end) if not traced else _cut_traced(data, start, end, StampKind.PEER_ROUTED)
            for task_id in destinations:
                outlet = self._put(task_id, segment)
                full = [outlet] if outlet is not None and outlet.full else []
                self._release(HeldRelease(producers.receive(task_id, end - start), end - start, full))
            self.markers.notice(data, start, segment, destinations)

    def route_acks(self, data: bytes) -> None:
        """Passes the segments of an ack frame to the ack sink.

        Raises:
            RemoteProtocolError: when a segment does not fit into the frame, or is of another kind.
        """
        for start, end, destinations in segment_routes(data):
            self._take_acks(data, start, end, destinations)

    def open_outlet(self, task_id: int, window_bytes: int) -> None:
        """A new session leads to a task: its queued segments may leave, and behind them the markers for it.

        An outlet that is open stays as it is.
        """
        outlet = self.outlets.get(task_id)
        if outlet is not None and outlet.window is None:
            outlet.open(window_bytes)
            for marker in self.markers.of(task_id):
                self._put(task_id, marker)
            self._changed.add(task_id)

    def credit_arrived(self, task_id: int, released_bytes: int) -> None:
        """The session that leads to a task has given back the credit of `released_bytes` in all."""
        outlet = self.outlets.get(task_id)
        if outlet is not None and outlet.window is not None:
            outlet.window.release(released_bytes)
            self._changed.add(task_id)

    def take_changed(self) -> set[int]:
        """The tasks whose outlets have got segments or credit since the last call.

        Nothing is sent before: at the end of each round the stream manager takes these tasks, and sends their outlets.
        """
        changed, self._changed = self._changed, set()
        return changed

    def release_held(self) -> None:
        """Gives back the credit that outlets held, where they have room again."""
        for task_id in tuple(self._holding):
            outlet = self.outlets.get(task_id)
            if outlet is None or not outlet.full:
                self._holding.discard(task_id)
                if outlet is not None:
                    self._release_all_of(outlet)

    def culprits(self) -> frozenset[int]:
        """The tasks whose outlets are congested."""
        return frozenset(task_id for task_id, outlet in self.outlets.items() if outlet.congested)

    def culprits_after(self, changed: set[int]) -> frozenset[int]:
        """The same, when only the outlets of `changed` have changed since the last call: a plan may have thousands."""
        now = {task_id for task_id in changed if task_id in self.outlets and self.outlets[task_id].congested}
        if now != self._congested & changed:
            self._congested = self._congested - changed | now
        return self._congested

    def waits_for(self, producer: Producer) -> tuple[int, ...]:
        """The tasks whose full outlets hold credit of that producer."""
        holding = (self.outlets[task_id] for task_id in sorted(self._holding & self.outlets.keys()))
        return tuple(outlet.task_id for outlet in holding if outlet.holds(producer))

    def forget(self, producer: Producer) -> None:
        """Drops the held releases of a producer that is gone."""
        for outlet in self.outlets.values():
            outlet.forget(producer)

    def _put(self, task_id: int, segment: Segment) -> Outlet | None:
        """Puts a segment into the outlet of a task; None if it is dropped and counted instead.

        It is dropped if the task is not in the plan, or if the task is congested and tuples may be dropped.
        """
        outlet = self.outlets.get(task_id)
        if outlet is None:
            if self._has_plan:
                self.unroutable_segments += self._matters(segment)
                return None
            # A restarted stream manager receives data before its first plan; the data waits in new outlets.
            outlet = self.outlets[task_id] = self._outlet(task_id)
        if outlet.congested and self.drops and segment[SEGMENT_KIND_AT] == SegmentKind.TUPLES:
            self.dropped_tuples[task_id] = self.dropped_tuples.get(task_id, 0) + parse_segment(bytes(segment), 0).rows
            return None
        outlet.put(segment)
        self._changed.add(task_id)
        return outlet

    def _take_acks(self, data: bytes, start: int, end: int, destinations: tuple[int, ...]) -> None:
        kind = data[start + SEGMENT_KIND_AT]
        if kind not in _ABOUT_ROOTS:
            msg = f"segment of kind {kind}, which no stream manager gets"
            raise RemoteProtocolError(msg, Violation.KIND)
        if len(destinations) != 1:
            msg = f"segment of kind {kind} for {len(destinations)} tasks, not for the one that has the roots"
            raise RemoteProtocolError(msg)
        self._acks.take(data, start, end, destinations[0])

    def _matters(self, segment: Segment) -> bool:
        """Whether something is lost with this segment; a lost marker loses no tree."""
        return segment[SEGMENT_KIND_AT] == _TUPLES and segment_plan(segment) >= self.valid_since

    def _outlet(self, task_id: int) -> Outlet:
        return Outlet(task_id, self._marks)

    def _release_all_of(self, outlet: Outlet) -> None:
        for release in outlet.take_held():
            self._release(release)

    def _release(self, release: HeldRelease) -> None:
        """Gives the credit back, or holds the release in the next full outlet."""
        while release.others:
            outlet = release.others.pop()
            if outlet.full:
                outlet.hold(release)
                self._holding.add(outlet.task_id)
                return
        release.producer.release(release.size_bytes)


def _cut(data: bytes, start: int, end: int) -> Segment:
    """A segment of a frame: a reference if it is most of the frame, else a copy that does not keep the frame alive.

    A small segment is always copied, because a reference takes more memory than its bytes.
    """
    if end - start >= _SMALL_BYTES and 2 * (end - start) >= len(data):
        return memoryview(data)[start:end]
    return data[start:end]


def _cut_traced(data: bytes, start: int, end: int, kind: StampKind) -> Segment:
    """A segment of a frame that has traced rows; such a segment is copied and stamped."""
    return traced_copy(data, start, end, kind) or _cut(data, start, end)

"""A topology in one process with real streams, pools, trackers and ledgers; the test decides when messages arrive.

`TreeModel` gives the expected outcomes. It uses no keys: the first value of each tuple is the number of its emit.
"""

from __future__ import annotations

import gc
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import cast

import pytest

from heron.api.definition import GroupingDefinition, InputDefinition, StreamDefinition
from heron.api.plain_batch import PlainBatch
from heron.api.stream import ICustomGrouping
from heron.api.tuple import Tuple, TupleHelper
from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.acks.tracked_batch import UNTRACKED, TrackedBatch, tracked_batch
from heron.instance.codec.batch_codec import rows_to_columns
from heron.instance.codec.plain import PLAIN
from heron.instance.garbage import collect_less
from heron.instance.gateway.session import settled_roots
from heron.instance.input.bolt_acks import AckTracker
from heron.instance.input.tuple_pool import TuplePool
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter, SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes, routes_of
from heron.instance.output.tracked_stream import AnchoredStream, RootStream
from heron.instance.task import StreamMaker
from heron.ipc.frames.frame import SEGMENT_KIND_AT, FrameKind, SegmentKind, frame_header, parse_segment, segment_routes
from heron.planner.physical_plan import PlanIndex
from heron.stmgr.ack_outcomes import AckOutcomes
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology
from parts import decoded_rows, stream_origin

Copy = tuple[int, int]
"""``(number of the emit, receiving task)``."""

FIELDS = ("uid", "key", "load")
TIMEOUT_S = 30.0
SPOUTS, MIDDLES, LASTS, SIDE = (1, 2), (3, 4), (5, 6), 7


def index_of(to_middle: GroupingDefinition, to_last: GroupingDefinition, to_side: GroupingDefinition) -> PlanIndex:
    """A plan: spout (2) -> middle (2) -> last (2), and a side bolt that subscribes to all of them."""
    both = stream(*FIELDS), stream(*FIELDS, name="unread")
    side = [subscription(name, to_side) for name in ("spout", "middle", "last")]
    definition = topology(
        spout("spout", *both, parallelism=2),
        bolt("middle", subscription("spout", to_middle), outputs=both, parallelism=2),
        bolt("last", subscription("middle", to_last), outputs=both[:1], parallelism=2),
        bolt("side", *side),
    )
    return plan_index(definition, {"spout": SPOUTS, "middle": MIDDLES, "last": LASTS, "side": (SIDE,)})


class Lane:
    """The frames of a task that have not arrived yet: data, and the acks that may overtake it.

    Each frame is stored with the information that the model needs, which `about_data` and `about_acks` return.
    """

    def __init__(
        self, about_data: Callable[[Sequence[bytes]], list[int]], about_acks: Callable[[], dict[Copy, str]]
    ) -> None:
        self._about_data, self._about_acks = about_data, about_acks
        self.data: deque[tuple[bytes, list[int]]] = deque()
        self.acks: deque[tuple[bytes, dict[Copy, str]]] = deque()

    def put(self, segments: Sequence[bytes]) -> None:
        """`heron.instance.output.emitter.SegmentSink`."""
        self.data.append((frame_header(FrameKind.DATA, 1, 1) + b"".join(segments), self._about_data(segments)))

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """`heron.instance.input.bolt_acks.AckOutput`."""
        self.acks.append((frame_header(FrameKind.ACK, 1, 1) + b"".join(segments), self._about_acks()))

    def has_room(self) -> bool:
        """Always True."""
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        """Never called."""
        return 0.0

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Never calls it."""


def copies_of(segments: Iterable[bytes]) -> list[Copy]:
    """Every copy in these segments."""
    copies: list[Copy] = []
    for each in segments:
        head = parse_segment(each, 0)
        if head.kind == SegmentKind.TUPLES:
            copies += [(cast("int", row[0]), task) for row in decoded_rows(each) for task in head.destinations]
    return copies


class TreeModel:
    """Trees as sets of copies: the ledger must give the same outcomes.

    A root is complete when each copy that can be reached from it is acked: its own copies, and those below acked ones.
    """

    def __init__(self) -> None:
        self.names: dict[int, object] = {}  # of roots, by emit
        self.live: dict[int, float] = {}  # root -> when it expires
        self.outcomes: list[tuple[str, object]] = []
        self.settled: set[Copy] = set()
        self.ack_sent: set[Copy] = set()
        self._bad: set[int] = set()
        self._roots_of: dict[int, set[int]] = {}  # by emit
        self._parents: dict[int, set[Copy]] = {}
        self._children: defaultdict[Copy, set[Copy]] = defaultdict(set)
        self._top: defaultdict[int, set[Copy]] = defaultdict(set)
        self._acked: set[Copy] = set()  # whose ack has arrived

    def emitted(self, uid: int, parents: Iterable[Copy], *, name: object = None, bad: bool = False) -> None:
        """An emit; with a name it is a root. An anchor counts if its ack has not left."""
        self._parents[uid] = {each for each in parents if each not in self.ack_sent}
        self._roots_of[uid] = {root for copy in self._parents[uid] for root in self._roots_of[copy[0]]}
        if name is not None:
            self._roots_of[uid], self.names[uid] = {uid}, name
        if bad:
            self._bad.add(uid)

    def left(self, uids: Iterable[int], copies: Iterable[Copy]) -> None:
        """A flush has left. A row that cannot be encoded counts as a copy that is never acked."""
        for uid, task in [*copies, *((uid, -1) for uid in uids if uid in self._bad)]:
            if uid in self.names:
                self._top[uid].add((uid, task))
            for parent in self._parents[uid]:
                self._children[parent].add((uid, task))

    def arrived(self, uids: list[int], deadline_s: float) -> None:
        """A flush arrives at the ledger."""
        self.live |= {uid: deadline_s for uid in uids if uid in self.names}
        self.gone({root for uid in uids if uid in self._bad for root in self._roots_of[uid]})
        self._complete()

    def acks_arrived(self, settled: dict[Copy, str]) -> None:
        """Acks and fails arrive at the ledger."""
        self._acked |= {copy for copy, how in settled.items() if how == "ack"}
        self._complete()
        self.gone({root for copy, how in settled.items() if how == "fail" for root in self._roots_of[copy[0]]})

    def expire(self, now_s: float) -> None:
        """Fails the roots that are too old."""
        self.gone([root for root, deadline_s in self.live.items() if deadline_s <= now_s])

    def gone(self, roots: Iterable[int]) -> None:
        """These roots fail, expire or are lost."""
        for root in sorted(set(roots)):
            if self.live.pop(root, None) is not None:
                self.outcomes.append(("fail", self.names[root]))

    def _complete(self) -> None:
        for root in [each for each in self.live if self._is_complete(each)]:
            del self.live[root]
            self.outcomes.append(("ack", self.names[root]))

    def _is_complete(self, root: int) -> bool:
        waiting, seen = list(self._top[root]), set(self._top[root])
        while waiting:
            copy = waiting.pop()
            if copy not in self._acked:
                return False
            below = {each for each in self._children[copy] if root in self._roots_of[each[0]]} - seen
            seen |= below
            waiting += below
        return True


class EmittingTask:
    """The base of both kinds of tasks."""

    def __init__(self, net: Net, task_id: int) -> None:
        self.net, self.task_id = net, task_id
        self.lane = Lane(self._left, self._acks_sent)
        self._pending: defaultdict[str, list[int]] = defaultdict(list)

    @property
    def streams(self) -> dict[str, OutStream]:
        """The output streams."""
        raise NotImplementedError

    def next_row(self, stream: str, parents: Iterable[Copy], *, name: object, bad: bool) -> list[object]:
        """The values of the next emit, which the model learns. Rows of a stream without consumers are never encoded."""
        net = self.net
        bad = bad and stream == "default"
        uid = net.uids = net.uids + 1
        net.model.emitted(uid, parents, name=name, bad=bad)
        self._pending[stream].append(uid)
        return [uid, uid % 5, (lambda: None) if bad else "x" * (uid % 40)]

    def _left(self, segments: Sequence[bytes]) -> list[int]:
        uids: list[int] = []
        for name, each in self.streams.items():
            if not each.rows:
                uids += self._pending.pop(name, [])
        self.net.model.left(uids, copies_of(segments))
        return uids

    def _acks_sent(self) -> dict[Copy, str]:
        raise NotImplementedError


class SpoutTask(EmittingTask):
    """A spout's emitter, pending roots and callbacks."""

    def __init__(self, net: Net, task_id: int) -> None:
        super().__init__(net, task_id)
        self.pending_roots = PendingRoots(lambda: net.now_s)
        self.emitter = SpoutEmitter(net.origin(task_id), self.lane)
        self.emitter.set_streams(net.streams(task_id, partial(_rooted, self.pending_roots)))
        self._emit = self.emitter.specialised()
        self.callbacks = RootCallbacks(
            self.pending_roots, TaskMetrics(), lambda _doing, error, _id: net.errors.append(error)
        )
        self.callbacks.on_ack = lambda name: net.outcomes.append(("ack", name))
        self.callbacks.on_fail = lambda name: net.outcomes.append(("fail", name))

    @property
    def streams(self) -> dict[str, OutStream]:
        """`EmittingTask.streams`."""
        return self.emitter.streams

    def emit(self, name: object, stream: str, *, bad: bool) -> None:
        """One emit; without a name it is no root."""
        assert self._emit is not None
        self._emit(self.next_row(stream, (), name=name, bad=bad), name, stream)

    def emit_batch(self, names: Sequence[object]) -> None:
        """One emit of rows that are encoded, each with a name, or all without."""
        rows = [self.next_row("default", (), name=name, bad=False) for name in names]
        ids = None if names[0] is None else names
        assert not self.emitter.emit_plain(PLAIN.encode(rows_to_columns(list(map(tuple, rows)), 3)), len(rows), ids=ids)


class BoltTask(EmittingTask):
    """A bolt's emitter, tracker and pools, used in the order in which `heron.instance.bolt_runner` uses them."""

    def __init__(self, net: Net, task_id: int) -> None:
        super().__init__(net, task_id)
        self.inbox: deque[bytes] = deque()
        self.kept: list[Tuple] = []
        self.tracker = AckTracker(self.lane)
        self.emitter = BoltEmitter(net.origin(task_id), self.lane)
        self.emitter.set_streams(net.streams(task_id, partial(_anchored, self.tracker)))
        self._emit = self.emitter.specialised()
        self._to_send: dict[Copy, str] = {}
        self._pools: dict[tuple[int, int], TuplePool] = {}
        self._pool: list[Tuple] = []

    @property
    def streams(self) -> dict[str, OutStream]:
        """`EmittingTask.streams`."""
        return self.emitter.streams

    def emit(self, anchors: list[Tuple] | None, stream: str, *, bad: bool) -> None:
        """One emit, if the bolt has output streams."""
        if self._emit is not None:
            parents = [self._copy_of(tup) for tup in anchors or () if not self._is_tick(tup)]
            self._emit(self.next_row(stream, parents, name=None, bad=bad), stream, anchors)

    def process_segment(self, process: Callable[[Tuple], None], between: Callable[[], None], slice_rows: int) -> None:
        """`BoltRunner._process_tuples`, for the oldest segment in the inbox."""
        data = self.inbox.popleft()
        head = parse_segment(data, 0)
        batch = tracked_batch(head, self.task_id)
        values = decoded_rows(data)
        source = (head.source_task, head.stream)
        pool = self._pools.setdefault(source, TuplePool(Tuple.source("c", "s", head.source_task)))
        self._pool = pool.take(head.rows)
        self.tracker.in_work = batch
        pairs = zip(self._pool, values, strict=False)
        tup: Tuple
        for done, (tup, tup.values) in enumerate(pairs, 1):
            process(tup)
            if done % slice_rows == 0:
                between()
        del pairs, tup
        self.settle()
        self.emitter.resolve_anchors(batch)
        self.tracker.in_work = None
        pool.recycle(head.rows, batch or UNTRACKED)

    def take_plain(self) -> tuple[PlainBatch, list[Tuple]]:
        """The oldest segment in the inbox as a batch that is not decoded, and a tuple for each of its rows."""
        data = self.inbox.popleft()
        head = parse_segment(data, 0)
        tracked = tracked_batch(head, self.task_id) or UNTRACKED
        batch, tuples = PlainBatch("c", "s", head.source_task, head.rows, b"", tracked), list[Tuple]()
        for place, values in enumerate(decoded_rows(data)):
            tuples.append(batch.anchor(place))
            tuples[-1].values = values
        return batch, tuples

    def emit_batch(self, anchors: Sequence[tuple[PlainBatch | Tuple, Sequence[int]]], tuples: Sequence[Tuple]) -> None:
        """One emit of rows that are encoded, anchored to these tuples, of which some are none."""
        parents = [[self._copy_of(each)] if each._index >= 0 else [] for each in tuples]
        rows = [tuple(self.next_row("default", each, name=None, bad=False)) for each in parents]
        assert not self.emitter.emit_plain(PLAIN.encode(rows_to_columns(list(rows), 3)), len(rows), anchors=anchors)

    def settle_rows(self, batch: PlainBatch, tuples: Sequence[Tuple], *, acked: bool) -> None:
        """`BoltAcks.settle_rows`."""
        copies = {self._copy_of(tup) for tup in tuples} - self.net.model.settled
        self.net.model.settled |= copies
        self._to_send |= dict.fromkeys(copies, "ack" if acked else "fail")
        if isinstance(batch.id, TrackedBatch):
            self.tracker.settle_places(batch.id, [each._index for each in tuples], acked=acked)

    def settle(self) -> None:
        """`BoltAcks.settle`."""
        settled = self.net.model.settled
        for how, tuples in (("fail", self.emitter.failed), ("ack", self.emitter.acked)):
            copies = {self._copy_of(tup) for tup in tuples if not self._is_tick(tup)} - settled
            settled |= copies
            self._to_send |= dict.fromkeys(copies, how)
        self.tracker.settle(self.emitter.acked, self.emitter.failed, self._pool)

    def flush(self) -> None:
        """`BoltOutput.flush`."""
        self.settle()
        self.emitter.flush()
        self.tracker.flush()

    def _copy_of(self, tup: Tuple) -> Copy:
        return tup.values[0], self.task_id

    @staticmethod
    def _is_tick(tup: Tuple) -> bool:
        return tup.stream == TupleHelper.TICK_TUPLE_ID

    def _acks_sent(self) -> dict[Copy, str]:
        sent, self._to_send = self._to_send, {}
        self.net.model.ack_sent |= {copy for copy, how in sent.items() if how == "ack"}
        return sent


class Net:
    """All tasks, the ledgers, and the model."""

    TIMEOUT_S = TIMEOUT_S

    def __init__(
        self,
        to_middle: GroupingDefinition,
        to_last: GroupingDefinition,
        to_side: GroupingDefinition,
        *,
        batch_rows: int = 20,
        batch_bytes: int = 400,
    ) -> None:
        self.index = index_of(to_middle, to_last, to_side)
        self._batch_rows, self._batch_bytes = batch_rows, batch_bytes
        self.now_s = 1000.0
        self.uids = 0
        self.model = TreeModel()
        self.outcomes: list[tuple[str, object]] = []
        self.errors: list[BaseException] = []
        self.ledgers = AckOutcomes()
        self.ledgers.timeout_s = TIMEOUT_S
        self.spouts = {task: SpoutTask(self, task) for task in SPOUTS}
        self.bolts = {task: BoltTask(self, task) for task in (*MIDDLES, *LASTS, SIDE)}
        self.tasks: list[SpoutTask | BoltTask] = [*self.spouts.values(), *self.bolts.values()]

    def origin(self, task_id: int) -> StreamOrigin:
        """Small batches, so that there are many different ones."""
        return stream_origin(
            task_id, batch_rows=self._batch_rows, batch_bytes=self._batch_bytes, tuple_max_bytes=100_000
        )

    def streams(self, task_id: int, make: StreamMaker) -> list[OutStream]:
        """The output streams of a task."""
        outputs = self.index.plan.topology.component(self.index.tasks[task_id].component).outputs
        origin = self.origin(task_id)
        return [
            make(number, each, routes_of(self.index, task_id, each, _no_custom), origin)
            for number, each in enumerate(outputs)
        ]

    def carry_data(self, task: SpoutTask | BoltTask, *, lose: bool = False) -> None:
        """The oldest data frame of a task arrives where the router would send it; `lose` drops its tuples."""
        if not task.lane.data:
            return
        frame, uids = task.lane.data.popleft()
        for start, end, destinations in segment_routes(frame):
            if frame[start + SEGMENT_KIND_AT] != SegmentKind.TUPLES:
                self.ledgers.take(frame, start, destinations[0], self.now_s)
                continue
            for destination in destinations if not lose else ():
                self.bolts[destination].inbox.append(frame[start:end])
        self.model.arrived(uids, self.now_s + TIMEOUT_S)
        self._deliver()

    def carry_acks(self, task: SpoutTask | BoltTask) -> None:
        """The oldest ack frame of a task arrives."""
        if not task.lane.acks:
            return
        frame, settled = task.lane.acks.popleft()
        for start, _, destinations in segment_routes(frame):
            self.ledgers.take(frame, start, destinations[0], self.now_s)
        self.model.acks_arrived(settled)
        self._deliver()

    def pass_time(self, seconds: float) -> None:
        """Lets time pass; roots that are too old expire."""
        self.now_s += seconds
        self.ledgers.expire(self.now_s)
        self.model.expire(self.now_s)
        self._deliver()

    def lose_all(self) -> None:
        """Fails all roots, as after the loss of a process that may have held a part of any tree."""
        self.ledgers.fail_all()
        self.model.gone(list(self.model.live))
        self._deliver()

    def _deliver(self) -> None:
        """Sends the outcomes to the spouts; they must equal those of the model."""
        for task_id, segments in self.ledgers.take_settled().items():
            self.spouts[task_id].callbacks.settle(settled_roots(frame_header(FrameKind.ACK, 1, 1) + b"".join(segments)))
        assert sorted(self.outcomes, key=repr) == sorted(self.model.outcomes, key=repr)
        assert self.ledgers.in_flight() == len(self.model.live)


def _rooted(
    pending: PendingRoots, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
) -> OutStream:
    return RootStream(number, definition, routes, origin, pending)


def _anchored(
    tracker: AckTracker, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
) -> OutStream:
    return AnchoredStream(number, definition, routes, origin, tracker)


def _no_custom(_consumer: str, _subscription: InputDefinition) -> ICustomGrouping:
    raise AssertionError


@pytest.fixture(scope="session")
def net_class() -> type[Net]:
    """`Net`, for tests that make many."""
    return Net


@contextmanager
def _collected() -> Iterator[list[int]]:
    """The generations that are collected meanwhile, with the thresholds of an instance."""
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            generations.append(info["generation"])

    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    collect_less()
    gc.callbacks.append(note)
    try:
        yield generations
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)  # the objects stay frozen: to unfreeze them would unfreeze those of all tests


@pytest.fixture
def collected() -> Callable[..., AbstractContextManager[list[int]]]:
    """`_collected`."""
    return _collected

"""The acks of batches, from emit to `Spout.ack`, in random scenarios that mix rows, batches and ids of rows.

A root may complete only when each copy of each of its rows is acked, fails with the first that fails, and has exactly
one outcome. Streams, trackers and ledgers are real; the test decides when messages arrive.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
import pytest

from heron.api.definition import GroupingDefinition, GroupingKind, InputDefinition
from heron.api.stream import ICustomGrouping
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.acks.tracked_batch import UNTRACKED, TrackedBatch
from heron.instance.codec.serializers import Serializers
from heron.instance.gateway.session import settled_roots
from heron.instance.input.batch_reader import BatchReader, ReceivedBatch
from heron.instance.input.bolt_acks import TrackedBoltAcks
from heron.instance.input.column_input import ColumnInput
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter, SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import routes_of
from heron.instance.output.tracked_stream import AnchoredStream, RootStream
from heron.instance.task import StreamMaker
from heron.ipc.frames.frame import SEGMENT_KIND_AT, FrameKind, SegmentKind, frame_header, parse_segment, segment_routes
from heron.planner.physical_plan import PlanIndex
from heron.spi.driver import DriverRef
from heron.stmgr.ack_outcomes import AckOutcomes
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology

REFS = (DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {}),)
SPOUT, MIDDLES, LASTS = 1, (2, 3), (4, 5)
COLUMN_TASKS = (3, 5)  # the others process rows
GROUPINGS = [
    GroupingDefinition(GroupingKind.SHUFFLE),
    GroupingDefinition(GroupingKind.ALL),
    GroupingDefinition(GroupingKind.FIELDS, ("key",)),
    GroupingDefinition(GroupingKind.LOWEST),
    GroupingDefinition(GroupingKind.PARTIAL_KEY, ("key",)),
]
HEADER = frame_header(FrameKind.DATA, 1, 1)


class Lane:
    """The frames of one task that have not arrived: data in order, and acks, which may overtake data."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.data: deque[bytes] = deque()
        self.acks: deque[bytes] = deque()

    def put(self, segments: Sequence[bytes]) -> None:
        """`SegmentSink.put`."""
        self.net.copies_left(segments)
        self.data.append(HEADER + b"".join(segments))

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """`AckOutput.put_acks`."""
        self.acks.append(HEADER + b"".join(segments))

    def has_room(self) -> bool:
        """Always True."""
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        """Never called."""
        return 0.0

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Never calls it."""


class Bolt:
    """A bolt task: settles what it gets at once, or later in any order."""

    def __init__(self, net: Net, task_id: int) -> None:
        self.net, self.task_id = net, task_id
        self.lane = Lane(net)
        self.inbox: deque[bytes] = deque()
        self.kept: list[tuple[Tuple | pa.RecordBatch, list[int]]] = []
        self.serializers = Serializers(REFS)
        self.reader = BatchReader(net.index, self.serializers)
        self.columns = ColumnInput(self.serializers.for_columns())
        self.emitter = BoltEmitter(net.origin(task_id), self.lane)
        self.acks = TrackedBoltAcks(self.emitter, TaskMetrics(), self.lane, task_id)
        self.emitter.column_acks = self.acks
        self.emitter.set_streams(net.streams(task_id, self.acks.make_stream))
        self.sends = task_id in MIDDLES

    def work(self) -> None:
        """Processes the oldest segment in the inbox as `BoltRunner` does."""
        data = self.inbox.popleft()
        head = parse_segment(data, 0)
        tracked = self.acks.batch_of(head)
        received = self.reader.read(data, head)
        if self.task_id in COLUMN_TASKS:
            batch = self.columns.columns_of(received).batch
            self.acks.begin_columns(batch, tracked, [])
            self.process(batch, batch.column("uid").to_pylist())
        else:
            self.process_rows(received, tracked)
        self.flush()

    def process_rows(self, received: ReceivedBatch, tracked: object) -> None:
        """`BatchProcessor.process_rows`."""
        pool = received.source.pool
        tuples = pool.take(received.rows)
        self.acks.begin(tracked, tuples)  # type: ignore[arg-type]  # a tracked batch or None
        pairs = zip(tuples, received.values(), strict=False)
        tup: Tuple
        for tup, tup.values in pairs:
            self.process(tup, [int(str(tup.values[0]))])
            if self.net.chance.random() < 0.05:
                self.flush()
        del pairs, tup
        self.acks.end(tracked)  # type: ignore[arg-type]
        pool.recycle(received.rows, tracked or UNTRACKED)

    def process(self, received: Tuple | pa.RecordBatch, uids: list[int]) -> None:
        """Emits under what was received, then settles it or keeps it."""
        chance = self.net.chance
        if self.sends:
            for _ in range(chance.choice([0, 1, 2])):
                others = [each for each in self.kept[:2] if chance.random() < 0.3]
                parents = [*uids, *(uid for _, of_other in others for uid in of_other)]
                again = [received] if chance.random() < 0.2 else []  # an anchor that is given twice counts once
                self.emit([received, *(each for each, _ in others), *again], parents)
        if chance.random() < 0.3:
            self.kept.append((received, uids))
        else:
            self.settle(received, uids)

    def emit(self, anchors: list[Tuple | pa.RecordBatch], parents: list[int]) -> None:
        """One emit, in rows or columns."""
        net = self.net
        roots = {root for uid in parents for root in net.roots_of[uid]}
        rows = net.new_rows(net.chance.choice([1, 1, 3]), roots)
        if net.chance.random() < 0.5:
            for row in rows:
                self.emitter.emit(list(row), anchors=anchors)
        else:
            self.emitter.emit_columns(net.batch(rows), anchors=anchors)

    def settle(self, received: Tuple | pa.RecordBatch, uids: list[int]) -> None:
        """Acks or fails."""
        net = self.net
        if net.chance.random() < net.bad:
            net.failed |= {root for uid in uids for root in net.roots_of[uid]}
            self.emitter.fail(received)
        else:
            self.emitter.ack(received)
        for uid in uids:
            net.open[uid] -= 1

    def flush(self) -> None:
        """`BoltOutput.flush`."""
        self.acks.settle()
        self.emitter.flush()
        self.acks.flush()


class Net:
    """All tasks and the ledger. `open` counts for each row its copies that are not settled, and its unsent emit."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.bad = chance.choice([0.0, 0.02, 0.2])
        outputs = stream("uid", "key")
        definition = topology(
            spout("spout", outputs),
            bolt("middle", subscription("spout", chance.choice(GROUPINGS)), outputs=(outputs,), parallelism=2),
            bolt("last", subscription("middle", chance.choice(GROUPINGS)), parallelism=2),
        )
        self.index = plan_index(definition, {"spout": [SPOUT], "middle": MIDDLES, "last": LASTS})
        self.uids, self.names = itertools.count(), itertools.count()
        self.roots_of: dict[int, set[int]] = {}
        self.rows_of: defaultdict[int, list[int]] = defaultdict(list)
        self.open: Counter[int] = Counter()
        self.unsent: set[int] = set()
        self.failed: set[int] = set()
        self.outcomes: dict[int, str] = {}
        self.ledgers = AckOutcomes()
        pending = PendingRoots(monotonic_s)
        self.lane = Lane(self)
        self.spout = SpoutEmitter(self.origin(SPOUT), self.lane)
        self.spout.set_streams(self.streams(SPOUT, partial(_rooted, pending)))
        self.callbacks = RootCallbacks(pending, TaskMetrics(), _refuse)
        self.callbacks.on_ack = partial(self.outcome, "ack")
        self.callbacks.on_fail = partial(self.outcome, "fail")
        self.bolts = {task: Bolt(self, task) for task in (*MIDDLES, *LASTS)}
        self.lanes = [self.lane, *(each.lane for each in self.bolts.values())]

    def origin(self, task_id: int) -> StreamOrigin:
        """Small batches, so that there are many."""
        limit = self.chance.choice([300, 100_000])
        return StreamOrigin(task_id, 0, 1, 20, limit, 1_000_000, _lost, serializers=Serializers(REFS))

    def streams(self, task_id: int, make: StreamMaker) -> list[OutStream]:
        """The output streams of a task."""
        index: PlanIndex = self.index
        outputs = index.plan.topology.component(index.tasks[task_id].component).outputs
        return [
            make(number, each, routes_of(index, task_id, each, _no_custom), self.origin(task_id))
            for number, each in enumerate(outputs)
        ]

    def new_rows(self, count: int, roots: Iterable[int]) -> list[tuple[int, str]]:
        """Rows that are about to be emitted under these roots."""
        rows = [(next(self.uids), f"k{self.chance.randrange(6)}") for _ in range(count)]
        for uid, _ in rows:
            self.roots_of[uid] = set(roots)
            self.unsent.add(uid)
            for root in self.roots_of[uid]:
                self.rows_of[root].append(uid)
        return rows

    @staticmethod
    def batch(rows: list[tuple[int, str]]) -> pa.RecordBatch:
        """The rows as columns."""
        uids, keys = zip(*rows, strict=True)
        return pa.record_batch({"uid": pa.array(uids, pa.int64()), "key": pa.array(keys)})

    def emit_roots(self) -> None:
        """The spout emits: a batch as one root, a batch with ids of rows, single rows, or a batch without an id."""
        count = self.chance.choice([1, 4, 30])
        form = self.chance.choice(["unit", "ids", "rows", "untracked"])
        names = [next(self.names) for _ in range({"unit": 1, "untracked": 0}.get(form, count))]
        if form in ("unit", "untracked"):
            rows = self.new_rows(count, names if form == "unit" else ())
            self.spout.emit_columns(self.batch(rows), tup_id=names[0] if form == "unit" else None)
            return
        rows = [self.new_rows(1, [name])[0] for name in names]
        if form == "ids":
            self.spout.emit_columns(self.batch(rows), ids=names)
        else:
            for row, name in zip(rows, names, strict=True):
                self.spout.emit(list(row), name)

    def copies_left(self, segments: Sequence[bytes]) -> None:
        """Rows leave a task: from now on their copies are counted."""
        reader = BatchReader(self.index, Serializers(REFS))
        for each in segments:
            head = parse_segment(each, 0)
            if head.kind == SegmentKind.TUPLES:
                for uid in (int(str(value)) for value in reader.read(each, head).columns()[0]):
                    self.open[uid] += len(head.destinations)
                    self.unsent.discard(uid)

    def carry(self, lane: Lane, *, acks: bool) -> None:
        """The oldest frame of a task arrives."""
        frames = lane.acks if acks else lane.data
        if not frames:
            return
        frame = frames.popleft()
        for start, end, destinations in segment_routes(frame):
            if frame[start + SEGMENT_KIND_AT] != SegmentKind.TUPLES:
                self.ledgers.take(frame, start, destinations[0], 0.0)
                continue
            for destination in destinations:
                self.bolts[destination].inbox.append(frame[start:end])
        for segments in self.ledgers.take_settled().values():
            self.callbacks.settle(settled_roots(frame_header(FrameKind.ACK, 1, 1) + b"".join(segments)))

    def outcome(self, how: str, name: object) -> None:
        """The spout learns the outcome of a root."""
        assert isinstance(name, int)
        assert name not in self.outcomes
        self.outcomes[name] = how
        if how == "ack":
            assert name not in self.failed
            waiting = [uid for uid in self.rows_of[name] if self.open[uid] or uid in self.unsent]
            assert not waiting, f"root {name} completed before its rows {waiting}"

    def settle_everything(self) -> None:
        """Carries and processes until nothing is left."""
        self.spout.flush()
        while any(lane.data or lane.acks for lane in self.lanes) or any(
            each.inbox or each.kept for each in self.bolts.values()
        ):
            for lane in self.lanes:
                self.carry(lane, acks=False)
                self.carry(lane, acks=True)
            for each in self.bolts.values():
                if each.inbox:
                    each.work()
                elif each.kept:
                    each.settle(*each.kept.pop())
                each.flush()


def _rooted(pending: PendingRoots, number: int, definition: object, routes: object, origin: object) -> OutStream:
    return RootStream(number, definition, routes, origin, pending)  # type: ignore[arg-type]  # a `StreamMaker`


def _no_custom(_consumer: str, _subscription: InputDefinition) -> ICustomGrouping:
    raise AssertionError


def _refuse(_doing: str, error: BaseException, _id: object) -> None:
    raise error


def _lost(_stream: str, _row: object, error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(each, marks=pytest.mark.matrix) for each in range(10, 30))]
)
def test_each_root_has_one_outcome_and_not_too_early(seed: int) -> None:
    """Random emits, arrivals and acks; then everything arrives."""
    chance = random.Random(seed)
    net = Net(chance)
    for _ in range(300):
        what = chance.choice(["emit", "flush", "data", "data", "work", "work", "kept", "acks"])
        each = chance.choice(list(net.bolts.values()))
        if what == "emit":
            net.emit_roots()
        elif what == "flush":
            net.spout.flush()
            each.flush()
        elif what == "work" and each.inbox:
            each.work()
        elif what == "kept" and each.kept:
            each.settle(*each.kept.pop(chance.randrange(len(each.kept))))
        elif what in ("data", "acks"):
            net.carry(chance.choice(net.lanes), acks=what == "acks")
    net.settle_everything()
    assert set(net.outcomes) == set(range(next(net.names)))
    assert {name for name, how in net.outcomes.items() if how == "fail"} == net.failed
    assert not net.unsent
    assert net.ledgers.in_flight() == 0


@pytest.mark.parametrize("form", ["tuples", "batch", "both"])
def test_an_anchor_that_is_given_twice_counts_once(form: str) -> None:
    """An emit under one of two rows, twice, is not an emit under both."""
    batch = TrackedBatch(MIDDLES[0], 2, 7)
    columns = pa.record_batch({"uid": [1, 2]})
    emitting = Net(random.Random(1)).bolts[MIDDLES[0]]
    emitting.acks.begin_columns(columns, batch, [])
    (stream_of,) = emitting.emitter.streams.values()
    assert isinstance(stream_of, AnchoredStream)
    first, second = Tuple(batch, (), 0), Tuple(batch, (), 1)
    anchors, rows = {
        "tuples": ([second, second], [1]),
        "batch": ([columns, columns], [0, 1]),
        "both": ([second, columns, first], [0, 1]),
    }[form]
    assert stream_of.parents_of(anchors) == [(batch, rows)]
    batch.settle([0])
    batch.note_acks_sent([0])
    assert stream_of.parents_of(anchors) == [(batch, [1])]

"""Components that pass batches on without decoding them, on their task threads; the test plays their stream manager."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.api.definition import StreamDefinition
from heron.api.plain_batch import PlainBatch
from heron.api.plain_components import PlainBolt, PlainSpout
from heron.api.tuple import Tuple
from heron.errors import EmitError, SerializationError
from heron.instance.bolt_runner import BoltRunner
from heron.instance.codec.plain import PLAIN, PlainSerializer
from heron.instance.codec.serializers import PICKLE
from heron.instance.output.out_stream import OutStream
from heron.instance.output.plain_output import rows_to_emit
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.spout_runner import SpoutRunner
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.spi.inspected_task import FirstRows
from heron.spi.serializer import Serializer
from parts import end_marker
from parts.tracked_rest import BOLT, SPOUT, Around, Rest, first_time, sent_end, settled, tracked


class Batches(PlainSpout):
    """Emits the numbers in `todo` as one batch, each as a root; emits failed numbers again."""

    outputs = ("v",)

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.todo: list[object] = [*range(5)]
        self.acked: list[list[object]] = []
        self.rows: list[object] = []  # that were emitted one by one

    def next_tuple(self) -> None:
        todo, self.todo = self.todo, []
        if not todo:
            self.end()
            return
        self.rows += (rows := self.emit_plain(PLAIN.encode([todo]), len(todo), ids=todo))
        for row in rows:
            self.emit(row, row[0])

    def ack(self, tup_id: object) -> None:
        pytest.fail(f"ack of {tup_id}")

    def ack_all(self, tup_ids: Sequence[object]) -> None:
        self.acked.append(list(tup_ids))

    def fail(self, tup_id: object) -> None:
        self.todo.append(tup_id)


def test_a_batch_of_roots_is_acked_in_one_call_and_a_failed_row_is_emitted_again() -> None:
    """Each row is a root, as if it had been emitted alone."""
    rest = Rest("spout", first_time("fail", 2), sent_end)
    spout = rest.run(SpoutRunner, Batches).component
    assert isinstance(spout, Batches)
    assert rest.events == [0, 1, 2, 3, 4, 2, "END"]
    assert spout.acked == [[0, 1, 3, 4], [2]]
    assert not spout.rows
    assert (rest.task.metrics.acked, rest.task.metrics.failed_by) == (5, {"failed": 1})


class Hears(Batches):
    """Has no `ack`, as most runners."""

    ack = PlainSpout.ack


def test_at_most_once_ids_arrive_one_by_one() -> None:
    """Its author writes `ack_all` only."""
    config = {"topology.reliability.mode": "ATMOST_ONCE"}
    spout = Rest("spout", first_time("ack"), sent_end, config=config).run(SpoutRunner, Hears).component
    assert isinstance(spout, Hears)
    assert spout.acked == [[each] for each in range(5)]


@pytest.mark.parametrize("config", [{"topology.trace.one.in": 1}, {"topology.replay.attempts": 1}])
def test_rows_are_decoded_where_their_values_are_needed(config: dict[str, float]) -> None:
    """A trace follows single rows; rows that the engine emits again are kept with their values."""
    rest = Rest("spout", first_time("fail", 2), sent_end, config=config)
    spout = rest.run(SpoutRunner, Batches).component
    assert isinstance(spout, Batches)
    assert [each for each in rest.events if each != "END"] == [0, 1, 2, 3, 4, 2]
    assert bool(spout.rows) == ("topology.trace.one.in" in config)


class Garbled(Batches):
    """Emits two rows, of which the second waits for a flush, and a batch that does not decode."""

    def next_tuple(self) -> None:
        if self.todo:
            self.todo = []
            self.emit((1,), 1)
            self.emit((2,), 2)
            with pytest.raises(SerializationError, match="does not decode"):
                self.emit_plain(PLAIN.encode([("abc",)]).replace(b"abc", b"a\xffc"), 1, ids=[3])
        self.end()


def test_a_batch_that_does_not_decode_costs_no_other_row() -> None:
    """The rows that were emitted before it leave, and are acked."""
    rest = Rest("spout", first_time("ack"), sent_end, config={"topology.replay.attempts": 1})
    spout = rest.run(SpoutRunner, Garbled).component
    assert isinstance(spout, Garbled)
    assert rest.events == [1, 2, "END"]
    assert [each for ids in spout.acked for each in ids] == [1, 2]


class Private(PlainSerializer):
    """A serializer that only this topology has."""

    encoding = 200


@pytest.mark.parametrize(("serializer", "rows"), [(PICKLE, []), (Private(), [(1,), (2,)])])
def test_a_private_serializer_writes_all_that_is_emitted(serializer: Serializer, rows: list[tuple[int]]) -> None:
    """It may encrypt: values must not travel beside it."""
    origin = StreamOrigin(1, 0, 1, 10, 1000, 1000, lambda *_: None, serializer)
    stream = OutStream(0, StreamDefinition("default", ("v",)), StreamRoutes(whole=(2,)), origin)
    assert list(rows_to_emit(stream, PLAIN.encode([(1, 2)]), 2, observed=False)) == rows


class PassesOn(PlainBolt):
    """Keeps what it gets; `act` decides about a batch."""

    outputs = ("v",)

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.batches: list[PlainBatch] = []
        self.tuples: list[Tuple] = []

    def process(self, tup: Tuple) -> None:
        self.tuples.append(tup)
        self.ack(tup)

    def process_plain(self, batch: PlainBatch) -> None:
        self.batches.append(batch)
        self.act(batch)

    def act(self, batch: PlainBatch) -> None:
        self.emit_plain(bytes(batch.payload), batch.rows, anchors=[(batch, range(batch.rows))])
        self.settle_rows(batch, range(batch.rows), acked=True)


def bolt_of(rest: Rest, component: type[PassesOn], *frames: bytes) -> PassesOn:
    rest.put(*frames, end_marker((BOLT,), SPOUT))
    runner = BoltRunner(rest.task, Around(rest), component)
    runner.run(ended=False)
    assert isinstance(runner.component, PassesOn)
    return runner.component


@pytest.mark.parametrize("plain", [True, False])
def test_a_batch_passes_as_it_came_under_the_roots_of_its_rows(plain: bool) -> None:  # a parameter
    """Rows of another serializer become the same payload."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    bolt = bolt_of(rest, PassesOn, tracked(10, "a", "b", None, plain=plain))
    assert [(each.component, each.stream, each.task, each.rows) for each in bolt.batches] == [
        ("spout", "default", SPOUT, 3)
    ]
    assert bytes(bolt.batches[0].payload) == PLAIN.encode([("a", "b", None)])
    assert [each for each in rest.events if isinstance(each, str | None)] == ["a", "b", None, "END"]
    assert settled(rest) == [10, 11, 12]
    assert rest.task.metrics.executed == {("spout", "default"): 3}
    assert not bolt.tuples


def test_values_that_are_no_columns_arrive_as_tuples() -> None:
    """In their order, between the batches."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    bolt = bolt_of(rest, PassesOn, tracked(10, "a"), tracked(20, 1, "b", plain=False), tracked(30, "c"))
    assert [each.values for each in bolt.tuples] == [(1,), ("b",)]
    assert len(bolt.batches) == 2
    assert settled(rest) == [10, 20, 21, 30]


class Chooses(PassesOn):
    """Fails the first row, acks the others in two calls, and one of them again."""

    def act(self, batch: PlainBatch) -> None:
        self.settle_rows(batch, [0], acked=False)
        self.settle_rows(batch, [2, 3], acked=True)
        self.settle_rows(batch, range(4), acked=True)


def test_rows_of_a_batch_are_settled_one_by_one() -> None:
    """The first ack or fail of a row counts."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    bolt_of(rest, Chooses, tracked(10, "a", "b", "c", "d"))
    assert (settled(rest), settled(rest, "failed")) == ([11, 12, 13], [10])
    metrics = rest.task.metrics
    assert (metrics.acked, metrics.failed, metrics.ignored_acks) == (3, 1, 3)


class Raises(PassesOn):
    """Acks a row, then raises."""

    def act(self, batch: PlainBatch) -> None:
        self.settle_rows(batch, [1], acked=True)
        raise ValueError


def test_an_exception_fails_the_rows_that_are_not_settled(capsys: pytest.CaptureFixture[str]) -> None:
    """The next batch is processed."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    bolt = bolt_of(rest, Raises, tracked(10, "a", "b", "c"), tracked(20, "d", "e"))
    assert (settled(rest), settled(rest, "failed")) == ([11, 21], [10, 12, 20])
    assert (rest.task.metrics.acked, rest.task.metrics.failed) == (2, 3)
    assert len(bolt.batches) == 2
    assert "process_plain" in capsys.readouterr().err


class Settles(PassesOn):
    """Emits nothing."""

    def act(self, batch: PlainBatch) -> None:
        self.settle_rows(batch, range(batch.rows), acked=True)


class Sampler:
    """An inspector that takes the first row of each batch."""

    def receive(self, _key: tuple[str, str], _task_id: int, _fields: Sequence[str], first_rows: FirstRows) -> None:
        first_rows(1)

    def emit(self, _stream: str, _fields: Sequence[str], _rows: Sequence[object]) -> None: ...

    def emit_columns(self, _stream: str, _fields: Sequence[str], _batch: object) -> None: ...


def test_rows_that_do_not_decode_fail_where_somebody_looks_at_values(capsys: pytest.CaptureFixture[str]) -> None:
    """A text that is not UTF-8 passes while nobody reads it."""
    garbled = tracked(10, "abc").replace(b"abc", b"a\xffc")
    for sample, passed in ((None, 2), (Sampler(), 1)):
        rest = Rest("bolt", first_time("ack"), sent_end)
        rest.gateway.inspected.sample = sample
        bolt = bolt_of(rest, Settles, garbled, tracked(20, "d"))
        assert len(bolt.batches) == passed
        assert (settled(rest), settled(rest, "failed")) == (([10, 20], []) if sample is None else ([20], [10]))
    assert "does not decode" in capsys.readouterr().err


class Waits(PassesOn):
    """Acks a batch, and stays in the call until the task is asked to stop."""

    def act(self, batch: PlainBatch) -> None:
        super().act(batch)
        while not self.flush_if_due():
            pass


def test_acks_leave_and_a_stop_is_seen_while_a_bolt_waits() -> None:
    """The program that it waits for may take longer than the timeout of the roots."""
    rest = Rest("bolt", first_time("ack"), lambda rest: settled(rest) == [10])
    bolt_of(rest, Waits, tracked(10, "a"))
    assert set(rest.events) == {"a", ("acked", 10)}


class Recorded(Rest):
    """Keeps why tuples have failed."""

    def __init__(self, config: dict[str, float | str]) -> None:
        super().__init__("bolt", first_time("ack"), sent_end, config=config)
        self.causes = b""

    def _read(self, data: bytes) -> None:
        if parse_segment(data, 0).kind == SegmentKind.CAUSE:
            self.causes += data
        else:
            super()._read(data)


def test_a_spout_that_replays_hears_of_the_exception() -> None:
    """As if a single tuple had failed."""
    rest = Recorded({"topology.replay.attempts": 1})
    bolt_of(rest, Raises, tracked(10, "a", "b"))
    assert settled(rest, "failed") == [10]
    assert b"process_plain" in rest.causes


class Mistaken(PassesOn):
    """Emits what is no batch of its stream."""

    def act(self, batch: PlainBatch) -> None:
        with pytest.raises(EmitError, match="unknown stream"):
            self.emit_plain(b"", 1, "other")
        with pytest.raises(SerializationError, match="a payload of 2 rows and 1 plain columns; expected 3 rows and 1"):
            self.emit_plain(PLAIN.encode([(1, 2)]), 3)
        with pytest.raises(SerializationError, match="expected 1 rows and 1 columns"):
            self.emit_plain(b"\0", 1)
        with pytest.raises(SerializationError, match="column 0, at byte 6 of 18, is no plain column"):
            self.emit_plain(PLAIN.encode([("abcdef",)])[:8] + b"\xe7\3\0\0abcdef", 1)
        self.settle_rows(batch, range(batch.rows), acked=True)


def test_what_is_no_batch_of_the_stream_is_refused() -> None:
    """Its receivers could not read it."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    bolt_of(rest, Mistaken, tracked(10, "a"))
    assert settled(rest) == [10]

"""What authors emit as columns: sizes, order, compression, and errors that name what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.api.context import TopologyContext
from heron.api.definition import GroupingDefinition, GroupingKind, InputDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import EmitError
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.codec.serializers import PICKLE, Serializers
from heron.instance.metrics.spans import TracePoint
from heron.instance.output.column_output import ColumnOutput
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import ColumnRecord, StreamOrigin
from heron.instance.output.stream_routes import routes_of
from heron.instance.output.tracked_stream import RootStream
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, Encoding, SegmentKind, parse_segment
from heron.ipc.frames.frame_limits import divided
from heron.ipc.frames.trace_field import is_traced, parse_trace
from heron.kernel.settings import EngineSettings
from heron.spi.driver import DriverRef
from heron.spi.tracing import SpanKind
from heron_serializer_arrow import ArrowSerializer
from heron_serializer_arrow.emitted import batch_of
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology

REFS = (DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {}),)
SERIALIZER = ArrowSerializer.open({})
ALL = GroupingDefinition(GroupingKind.ALL)
BY_KEY = GroupingDefinition(GroupingKind.FIELDS, ("key",))
BATCH = pa.record_batch({"key": ["a", "b", "a"], "n": [1, 2, 3]})


class Sent:
    """A spout's emitter, and everything that it sends to one task."""

    def __init__(
        self,
        grouping: GroupingDefinition = ALL,
        *,
        refs: Sequence[DriverRef] = REFS,
        batch_bytes: int = 100_000,
        tuple_max_bytes: int = 1_000_000,
        config: dict[str, object] | None = None,
        custom: ICustomGrouping | None = None,
    ) -> None:
        self.segments: list[bytes] = []
        self.errors: list[str] = []
        definition = topology(spout("spout", stream("key", "n")), bolt("bolt", subscription("spout", grouping)))
        index = plan_index(definition, {"spout": [1], "bolt": [2]})
        output = definition.component("spout").outputs[0]

        def grouping_of(_consumer: str, _subscription: InputDefinition) -> ICustomGrouping:
            assert custom is not None
            return custom

        limits = (1000, batch_bytes, tuple_max_bytes)
        origin = StreamOrigin(1, 0, 1, *limits, self.reject, PICKLE, Serializers(refs), config or {})
        self.emitter = SpoutEmitter(origin, self)
        self.stream = OutStream(0, output, routes_of(index, 1, output, grouping_of), origin)
        self.emitter.set_streams([self.stream])
        self.stream.limit = self.stream.full_limit  # the linger is not over

    def put(self, segments: Sequence[bytes]) -> None:
        """`SegmentSink.put`."""
        self.segments.extend(segments)

    def has_room(self) -> bool:
        """Always True."""
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        """Never called."""
        return 0.0

    def on_linger_over(self, action: object) -> None:
        """Never calls it."""

    def reject(self, stream_name: str, row: object, error: Exception) -> None:
        """`StreamOrigin.rejected`."""
        self.errors.append(f"{stream_name}: {row}: {error}")

    def rows(self) -> list[tuple[object, ...]]:
        """The rows of all segments, in order."""
        self.emitter.flush()
        found: list[tuple[object, ...]] = []
        for each in self.segments:
            head = parse_segment(each, 0)
            payload = each[head.payload_start : head.end]
            columns = (SERIALIZER if head.encoding == Encoding.ARROW else PICKLE).decode(payload)
            assert all(len(column) == head.rows for column in columns)
            found += zip(*columns, strict=True)
        return found


def test_rows_and_batches_of_a_stream_stay_in_the_order_of_their_emits() -> None:
    """Whatever waits for a flush when the other form is emitted."""
    sent = Sent()
    expected: list[tuple[object, ...]] = []
    for number in range(40):
        if number % 3:
            sent.emitter.emit([f"row{number}", number])
            expected.append((f"row{number}", number))
        else:
            sent.emitter.emit_columns({"key": ["b", "c"], "n": [number, number]})
            expected += [("b", number), ("c", number)]
    assert sent.emitter.emitted("default") == len(expected)
    assert sent.rows() == expected
    assert sent.emitter.emitted("default") == len(expected)


def test_small_batches_wait_for_the_linger_and_leave_as_one() -> None:
    """A segment for each row of a busy spout would cost a hundred times the row."""
    sent = Sent()
    for _ in range(50):
        sent.emitter.emit_columns(BATCH)
    assert not sent.segments
    assert sent.emitter.pending_rows() == 150
    assert len(sent.rows()) == 150
    assert len(sent.segments) == 1
    sent.stream.limit = 0  # the linger is over: an idle stream sends at once
    sent.emitter.emit_columns(BATCH)
    assert len(sent.segments) == 2


def test_a_large_batch_is_cut_to_the_size_of_batches() -> None:
    """Queues, credit and parks count bytes: one batch of gigabytes would pass all of them."""
    sent = Sent(batch_bytes=10_000)
    sent.emitter.emit_columns({"key": [f"key{number}" for number in range(20_000)], "n": range(20_000)})
    assert [row[1] for row in sent.rows()] == list(range(20_000))
    assert max(map(len, sent.segments)) < 25_000
    assert not sent.errors


def test_a_row_that_is_too_large_is_lost_alone_and_named() -> None:
    """The rows beside it are sent."""
    sent = Sent(batch_bytes=10_000, tuple_max_bytes=20_000)
    keys = ["small", "x" * 30_000, *("y" * 9_000 for _ in range(5))]
    sent.emitter.emit_columns({"key": keys, "n": range(7)})
    assert [row[1] for row in sent.rows()] == [0, 2, 3, 4, 5, 6]
    (error,) = sent.errors
    assert "row 1 of a batch takes 30" in error
    assert "heron.tuple.max.bytes, 20000 bytes" in error


def test_a_change_of_types_names_stream_field_and_both_types() -> None:
    """The types of a stream are those of the first batch of the task, also after a change of plan."""
    sent = Sent()
    sent.emitter.emit_columns(BATCH)
    sent.emitter.set_streams([sent.stream])
    with pytest.raises(EmitError, match=r"stream 'default': field 'n' has the type double, .* had int64"):
        sent.emitter.emit_columns({"key": ["a"], "n": [1.5]})
    assert len(sent.rows()) == 3


def test_a_dictionary_is_an_encoding_and_not_a_type() -> None:
    """A bolt passes on what it got: text from a stream of rows, dictionaries from another one."""
    sent = Sent()
    keys = pa.array(["a", "b"])
    coded = keys.dictionary_encode()
    for each in (keys, coded, coded.cast(pa.dictionary(pa.int8(), pa.string())), keys):
        sent.emitter.emit_columns({"key": each, "n": [1, 2]})
    assert sent.rows() == [("a", 1), ("b", 2)] * 4
    with pytest.raises(EmitError, match="has the type binary, the batches before had string"):
        sent.emitter.emit_columns({"key": pa.array([b"a"]).dictionary_encode(), "n": [1]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": ["a"]}, r"stream 'default': the columns \(key\) are not the declared fields \(key, n\)"),
        ({"key": ["a"], "n": [1, 2]}, "stream 'default': a dict cannot be emitted as columns"),
        ([["a"], [1]], "a list cannot be emitted as columns: give a pyarrow RecordBatch or Table"),
        ({"key": ["a", 7], "n": [1, 2]}, "column 'key' has values of int, str, which Arrow has no common type for$"),
        ({"key": [["nested"]], "n": [1]}, r"field 'key' has the type list<.*>, which rows cannot be grouped by"),
    ],
)
def test_what_cannot_be_emitted_fails_at_the_emit(given: object, message: str) -> None:
    """And changes nothing: the next emit is as if it had not been tried."""
    sent = Sent(BY_KEY)
    with pytest.raises(EmitError, match=message):
        sent.emitter.emit_columns(given)  # type: ignore[arg-type]  # wrong on purpose
    assert not sent.rows()


_COLUMNS_IN_THEMSELVES = """
import sys
import numpy
from collections import UserList
from heron.errors import EmitError, SerializationError
from heron_serializer_arrow.emitted import batch_of
from heron_serializer_arrow.serializer import ArrowSerializer

inside = []
inside.append(inside)
views = {}
views["values"] = views.values()
array = numpy.empty(1, dtype=object)
array[0] = array
twice = []
twice += [twice, twice]
sequences = [inside], twice, array, {"a": inside}.values(), UserList([inside]), [views]
for values in (*sequences, iter([inside]), map(list, [inside])):
    try:
        batch_of({"n": values}, ["n"])
    except EmitError as error:
        print("contains itself" in str(error))
try:
    ArrowSerializer.open({}).from_columns([[1, 2], [inside, None]], ["a", "b"], None)
except SerializationError as error:
    print("field 'b': it contains itself" in str(error))
"""


def test_columns_that_contain_themselves_are_refused_in_each_form() -> None:
    """Arrow would end the process, so another one tries them."""
    program = [sys.executable, "-c", _COLUMNS_IN_THEMSELVES]
    found = subprocess.run(program, check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout.split()) == (0, ["True"] * 9), found.stderr


def test_columns_of_iterators_and_nested_values_are_emitted_as_they_are() -> None:
    """A look at their depth must not consume them; a value may occur many times."""
    shared = [1, 2]
    for values in (iter([shared, shared]), (each for each in (shared, shared)), [shared, shared]):
        assert batch_of({"n": values}, ["n"]).to_pydict() == {"n": [[1, 2], [1, 2]]}
    assert batch_of({"n": np.arange(2)}, ["n"]).to_pydict() == {"n": [0, 1]}


class Wrong(ICustomGrouping):
    """Chooses a task of nobody for some rows."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Nothing to prepare."""

    def choose_tasks(self, values: tuple[object, ...]) -> list[int]:
        """A wrong task for the key "b"."""
        return [99 if values[0] == "b" else 2]


def test_a_custom_grouping_fails_at_the_emit_and_loses_nothing() -> None:
    """What was emitted before is sent, and the batch as a whole is not."""
    sent = Sent(GroupingDefinition(GroupingKind.CUSTOM, entry="m:Wrong"), custom=Wrong())
    sent.emitter.emit(["before", 0])
    with pytest.raises(EmitError, match=r"Wrong chose tasks \[99\]"):
        sent.emitter.emit_columns(BATCH)
    sent.emitter.emit_columns({"key": ["c"], "n": [1]})
    assert sent.rows() == [("before", 0), ("c", 1)]


def test_a_key_that_is_refused_leaves_no_type_behind() -> None:
    """The next batch may have another type."""
    sent = Sent(BY_KEY)
    with pytest.raises(EmitError, match="cannot be grouped by"):
        sent.emitter.emit_columns({"key": [[1]], "n": [1]})
    sent.emitter.emit_columns({"key": ["a"], "n": [1]})
    assert sent.rows() == [("a", 1)]


def test_a_null_key_is_a_key() -> None:
    """As None is in rows."""
    sent = Sent(BY_KEY)
    sent.emitter.emit_columns({"key": pa.array([None, "a"]), "n": [1, 2]})
    assert sent.rows() == [(None, 1), ("a", 2)]


def test_unknown_streams_and_tasks_are_refused() -> None:
    """With the errors of rows."""
    sent = Sent()
    with pytest.raises(EmitError, match=r"unknown stream 'defualt'.*nearest: 'default'"):
        sent.emitter.emit_columns(BATCH, stream="defualt")
    with pytest.raises(EmitError, match="direct_task is 9, which is not a task of a consumer"):
        sent.emitter.emit_columns(BATCH, direct_task=9)


@pytest.mark.parametrize(
    ("tup_id", "ids", "message"),
    [("a", [1, 2, 3], "both tup_id and ids"), (None, [1, 2], "2 ids for 3 rows"), (None, [1, None, 3], "is None")],
)
def test_ids_that_do_not_fit_the_rows_are_refused(tup_id: object, ids: list[object], message: str) -> None:
    """Else rows would have the ids of others."""
    sent = Sent()
    with pytest.raises(EmitError, match=message):
        sent.emitter.emit_columns(BATCH, tup_id, ids=ids)


def test_at_most_once_the_ids_of_batches_are_kept_in_order() -> None:
    """The spout acks them itself; ids may be an array."""
    sent, ids = Sent(), list[object]()
    sent.emitter.set_streams([sent.stream], ids=ids)
    sent.emitter.emit_columns(BATCH, ids=np.arange(3))  # type: ignore[arg-type]  # a sequence, though not by its types
    sent.emitter.emit_columns(BATCH, "batch")
    sent.emitter.emit_columns(BATCH)
    assert ids == [0, 1, 2, "batch"]


def test_a_component_that_does_not_say_so_gets_no_columns() -> None:
    """The topology was submitted without the serializer; the error says what to set."""
    sent = Sent(refs=())
    with pytest.raises(EmitError, match=r"serializer 'arrow' was not submitted.*set columns = True"):
        sent.emitter.emit_columns(BATCH)


def test_compression_is_chosen_by_stream() -> None:
    """Repetitive text shrinks; a stream that is not named is not compressed."""
    sizes = {}
    for value in ("none", "zstd", "default: lz4, other: zstd", "other: zstd"):
        sent = Sent(config={"topology.columns.compression": value})
        sent.emitter.emit_columns({"key": ["the same text again"] * 2000, "n": range(2000)})
        assert len(sent.rows()) == 2000
        (segment,) = sent.segments
        sizes[value] = len(segment)
    assert sizes["zstd"] < sizes["none"] / 4
    assert sizes["default: lz4, other: zstd"] < sizes["none"] / 2
    assert sizes["other: zstd"] == sizes["none"]


def test_payloads_are_aligned_in_their_segments() -> None:
    """So a segment that is alone in its frame is read without a copy."""
    sent = Sent()
    for _ in range(3):
        sent.stream.limit = 0
        sent.emitter.emit_columns(BATCH)
    assert [parse_segment(each, 0).payload_start % 8 for each in sent.segments] == [0, 0, 0]
    assert [len(each) % 8 for each in sent.segments] == [0, 0, 0]


@pytest.mark.parametrize("rows", [3, 100_000], ids=["waits", "leaves at once"])
def test_a_batch_is_what_it_was_at_its_emit(rows: int) -> None:
    """Arrays may share memory with NumPy, and authors fill such memory again and again."""
    sent = Sent()
    numbers = np.arange(rows)
    sent.emitter.emit_columns({"key": pa.array(["a"] * rows), "n": pa.array(numbers)})
    numbers[:] = -1
    assert [row[1] for row in sent.rows()] == list(range(rows))


def traced(segments: Sequence[bytes]) -> list[tuple[int, int]]:
    """``(rows, place of the traced row)`` of each traced segment; its payload is aligned like any other."""
    found = []
    for each in segments:
        head = parse_segment(each, 0)
        if (fields := parse_trace(head)) is not None:
            assert (head.payload_start % 8, is_traced(each)) == (0, True)
            found += [(head.rows, entry.row) for entry in fields.entries]
    return found


def test_a_row_of_a_batch_is_traced_where_it_is_sent() -> None:
    """Batches that wait leave as one, and rows behind them are of the same stream."""
    sent = Sent()
    sent.emitter.trace_roots(1)
    sent.stream.limit = sent.stream.full_limit
    sent.emitter.emit_columns(BATCH)
    sent.emitter.emit_columns(BATCH)
    sent.emitter.flush()
    assert traced(sent.segments) == [(6, 0)]
    (root,) = sent.emitter.origin.spans.take()
    assert root.kind is SpanKind.ROOT


def test_a_traced_row_is_in_the_part_of_its_task() -> None:
    """With a fields grouping, rows of a batch go to several tasks."""
    sent = Sent(BY_KEY)
    sent.stream.points = [TracePoint(2, 7, 8, 100, 5)]
    assert sent.emitter.column_target(BATCH, "default", None)  # makes the columns of the stream
    columns = sent.stream.columns
    assert columns is not None
    parts = columns.parts(BATCH, None)
    lots = [columns._segment(lot) for lot in columns._lots(parts, [])]
    assert traced(lots) == [(3, 2)]


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"]])
def test_the_outcome_of_a_batch_that_is_traced_is_awaited(ids: list[object] | None) -> None:
    """A batch with one id is one root; with `ids` each row is one."""
    sent = Sent()
    pending = PendingRoots(lambda: 0.0)
    given = sent.stream
    stream = RootStream(0, given.definition, given.routes, given.origin, pending)
    sent.emitter.trace_roots(1)
    sent.emitter.set_streams([stream])
    sent.emitter.emit_columns(BATCH, tup_id="whole" if ids is None else None, ids=ids)
    assert traced(sent.segments) == [(3, 0)]
    (counter,) = sent.emitter.origin.spans.in_flight
    assert pending.has(counter)


FRAME_BYTES = EngineSettings(tuple_max_bytes=1024, batch_bytes=1024).frame_max_bytes


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 1024)), min_size=1, max_size=6), st.booleans())
def test_batches_of_any_size_leave_in_frames_within_the_limit(batches: list[tuple[int, int]], with_ids: bool) -> None:
    """Rows of columns may take no bytes at all, and `ids` add 8 bytes for each."""
    sent = Sent(batch_bytes=1024, tuple_max_bytes=1024)
    pending = PendingRoots(lambda: 0.0)
    given_stream = sent.stream
    stream = RootStream(0, given_stream.definition, given_stream.routes, given_stream.origin, pending)
    sent.emitter.set_streams([stream])
    expected: list[tuple[object, ...]] = []
    for number, (rows, size_bytes) in enumerate(batches):
        keys = ["k" * (size_bytes // 4)] if size_bytes else [""] * rows
        sent.emitter.emit_columns(
            {"key": keys, "n": [number] * len(keys)}, ids=list(range(len(keys))) if with_ids else None
        )
        expected += [(key, number) for key in keys]
    sent.emitter.flush()
    frames = [frame for frame, _ in divided(sent.segments, FRAME_BYTES)]
    assert all(0 < FRAME_HEADER_BYTES + sum(map(len, frame)) <= FRAME_BYTES for frame in frames)
    sent.segments = [each for each in sent.segments if parse_segment(each, 0).kind == SegmentKind.TUPLES]
    assert sent.rows() == expected
    assert not sent.errors


def test_rows_without_bytes_are_divided_by_their_numbers() -> None:
    """A column of nulls has no size, but each row of a batch with `ids` has a number and a root."""
    sent = Sent(batch_bytes=1024, tuple_max_bytes=1024)
    stream = RootStream(0, sent.stream.definition, sent.stream.routes, sent.stream.origin, PendingRoots(lambda: 0.0))
    sent.emitter.set_streams([stream])
    rows = 200_000
    sent.emitter.emit_columns({"key": pa.nulls(rows), "n": pa.nulls(rows)}, ids=range(rows))
    assert FRAME_HEADER_BYTES + max(map(len, sent.segments)) <= FRAME_BYTES
    heads = [parse_segment(each, 0) for each in sent.segments]
    assert sum(head.rows for head in heads if head.kind == SegmentKind.TUPLES) == rows
    assert sum(head.rows for head in heads if head.kind == SegmentKind.ROOTS) == rows
    assert not sent.errors


def test_a_batch_under_too_many_roots_is_named() -> None:
    """All of its rows are under all roots, so it cannot be divided."""
    sent = Sent(tuple_max_bytes=1024)
    batch = sent.stream.origin.column_serializer().batch_of(BATCH, sent.stream.definition.fields)
    columns = ColumnOutput(sent.stream, ColumnRecord())
    roots = np.arange(40_000, dtype=np.uint64) + np.uint64(7 << 48)
    segments, _ = columns.anchored_segments(columns.parts(batch, None), 3, roots)
    heads = [parse_segment(each, 0) for each in segments]
    assert {head.kind for head in heads} == {SegmentKind.FAIL}
    assert sum(head.rows for head in heads) == len(roots)
    (error,) = sent.errors
    assert "3 rows of (key, n), from row 0: the roots of the anchors take 640016 bytes" in error
    assert "anchor it to fewer tuples" in error

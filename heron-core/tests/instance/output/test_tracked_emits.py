"""The generated emits of tracked streams: a rejected emit changes nothing, and rows, ids and anchors stay aligned."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Sequence
from unittest.mock import ANY

import numpy as np
import pytest

from heron.api.definition import StreamDefinition
from heron.api.tuple import Tuple, TupleHelper
from heron.errors import EmitError
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.input.bolt_acks import AckTracker
from heron.instance.output.emitter import BoltEmitter, SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import KeyedEdge, KeyMemo, KeySplitter, StreamRoutes
from heron.instance.output.tracked_stream import UNANCHORED, AnchoredStream, RootStream
from heron.instance.queues.data_queue import DataOut, Sleeper
from heron.ipc.frames.frame import Marker, OptionTag, SegmentKind, parse_segment
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.frames.tracking_arrays import parse_new_roots
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.kernel.settings import EngineSettings
from heron.planner.key_owners import even_owners
from parts import stream_origin

LIMITS = FrameLimits(1_000_000)

MAKE = Tuple.source("c", "s", 1)


def keyed() -> StreamRoutes:
    splitter = KeySplitter(KeyMemo(even_owners(1024, (8, 9)), single=True))
    return StreamRoutes(splitters=(splitter,), keyed=(KeyedEdge((0,), splitter.memo, splitter.picks),))


def origin_of() -> StreamOrigin:
    return stream_origin(3)


def anchored(routes: StreamRoutes) -> tuple[BoltEmitter, AnchoredStream]:
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    emitter, tracker = BoltEmitter(origin_of(), out), AckTracker(out)
    batch = tracker.in_work = TrackedBatch(3, 9, 5)
    batch.root_base = 100
    stream = AnchoredStream(0, StreamDefinition("default", ("v",)), routes, emitter.origin, tracker)
    stream.limit = stream.full_limit
    emitter.set_streams([stream])
    return emitter, stream


def rooted(routes: StreamRoutes) -> tuple[SpoutEmitter, RootStream, DataOut]:
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    emitter = SpoutEmitter(origin_of(), out)
    stream = RootStream(0, StreamDefinition("default", ("v",)), routes, emitter.origin, PendingRoots(lambda: 0.0))
    stream.limit = stream.full_limit
    emitter.set_streams([stream])
    return emitter, stream, out


EMITS: list[Callable[[BoltEmitter], Callable[..., object]]] = [
    lambda emitter: emitter.emit,
    lambda emitter: emitter.specialised(),  # type: ignore[list-item,return-value]  # it has a default stream
]


class NeverEqual:
    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = None  # type: ignore[assignment]  # like arrays


@pytest.mark.parametrize("tup_id", [np.array([1, 2]), [1], {"a": 1}, NeverEqual(), 0, "", False, ANY])
def test_an_id_may_be_any_object(tup_id: object) -> None:
    """An array is neither equal to None nor different from it, and `ANY` is equal to it."""
    emitter, stream, _ = rooted(StreamRoutes((2,)))
    emitter.emit(["a"], tup_id=tup_id)
    emitter.emit(["b"])
    stream.flush()
    assert stream.pending.in_flight == 1


@pytest.mark.parametrize("emit_of", EMITS)
def test_a_copy_as_anchor_is_named(emit_of: Callable[[BoltEmitter], Callable[..., object]]) -> None:
    """Its row belongs to no tree; that must not happen silently. A tick has no tree."""
    emitter, stream = anchored(StreamRoutes((2,)))
    emit = emit_of(emitter)
    emit(["a"], anchors=[copy.copy(MAKE(None, (), 1))])
    emit(["b"], anchors=[TupleHelper.make_tick_tuple()])
    emit(["c"], anchors=[MAKE(None, (), 1)])
    assert [str(each).partition(" of ")[0] for each in stream.tracker.wrong] == ["anchor"]


@pytest.mark.parametrize("emit_of", EMITS)
@pytest.mark.parametrize("make", [list, tuple, set, iter])
def test_anchors_may_be_any_iterable(
    emit_of: Callable[[BoltEmitter], Callable[..., object]], make: Callable[[list[Tuple]], object]
) -> None:
    """There may be one, none or several, also as an iterator, which can be read only once."""
    emitter, stream = anchored(StreamRoutes((2,)))
    emit = emit_of(emitter)
    one, two = MAKE(None, (), 1), MAKE(None, (), 2)
    emit(["a"])
    for anchors in ([one], [], [one, two]):
        emit(["b"], anchors=make(anchors))
    assert len(stream.rows) == 4
    stream.anchors.resolve(stream.tracker.in_work)
    regular, irregular = stream.anchors.take()
    assert [(each.start, each.places) for each in regular] == [(1, [1])]
    assert {row: sorted(place for _, place in places) for row, places in irregular.items()} == {3: [1, 2]}


@pytest.mark.parametrize("emit_of", EMITS)
@pytest.mark.parametrize("anchors", [MAKE(None, (), 1), "tup", ["tup"], 5, [None], [MAKE(), 3]])
@pytest.mark.parametrize("routes", [lambda: StreamRoutes((2,)), keyed])
def test_an_emit_with_wrong_anchors_is_rejected_and_changes_nothing(
    emit_of: Callable[[BoltEmitter], Callable[..., object]], anchors: object, routes: Callable[[], StreamRoutes]
) -> None:
    """Otherwise later rows would get the anchors of other rows."""
    emitter, stream = anchored(routes())
    emit = emit_of(emitter)
    with pytest.raises(EmitError, match="anchors"):
        emit(["a"], anchors=anchors)
    assert not stream.rows
    assert not stream.anchors.parents
    emit(["b"], anchors=[MAKE(None, (), 4)])
    assert len(stream.rows) == len(stream.anchors.parents) == 1
    assert stream.flush()


@pytest.mark.parametrize("emit_of", EMITS)
def test_a_row_that_is_rejected_for_its_values_leaves_no_anchor(
    emit_of: Callable[[BoltEmitter], Callable[..., object]],
) -> None:
    """The number of values may be wrong, or the key may have another type."""
    emitter, stream = anchored(keyed())
    emit = emit_of(emitter)
    for values in ([1, 2], [[object()]]):
        with pytest.raises(EmitError):
            emit(values, anchors=[MAKE(None, (), 4)])
    assert not stream.rows
    assert not stream.anchors.parents
    emit(["b"])
    assert stream.anchors.parents == [UNANCHORED]


def test_ids_of_a_spout_may_be_anything() -> None:
    """Ids need not be hashable. A row without id is no root, also between roots."""
    emitter, stream, out = rooted(StreamRoutes((2,)))
    emit = emitter.specialised()
    assert emit is not None
    for tup_id in (["a list"], None, {"a": "dict"}, 0):
        emit(["v"], tup_id)
    emitter.flush()
    assert stream.pending.in_flight == 3
    assert [ids for ids, _ in stream.pending.settle_all()] == [[["a list"], {"a": "dict"}, 0]]
    emit(["v"])
    emitter.flush()
    assert stream.pending.in_flight == 0
    kinds = [[parse_segment(data, 0).kind for data in item[0]] for item in out.items if isinstance(item, tuple)]
    assert kinds == [[SegmentKind.ROOTS, SegmentKind.TUPLES], [SegmentKind.TUPLES]]


def test_a_rejected_emit_of_a_spout_leaves_no_id() -> None:
    """Otherwise each later root would get the id of another."""
    emitter, stream, _ = rooted(keyed())
    for values in ([1, 2], [[object()]]):
        with pytest.raises(EmitError):
            emitter.emit(values, "refused")
    emitter.emit(["v"], "good")
    emitter.flush()
    assert [ids for ids, _ in stream.pending.settle_all()] == [["good"]]


def test_a_text_that_is_refused_leaves_no_id_and_no_anchor() -> None:
    """It is found behind its append. Otherwise each later row would get the id or anchor of another."""
    spout, roots, _ = rooted(keyed())
    bolt, rows = anchored(keyed())
    emit_root, emit_row = spout.specialised(), EMITS[1](bolt)
    assert emit_root is not None
    for text, value in enumerate(("before", "after")):
        roots.limit = rows.limit = 0 if text else 10
        if text:
            with pytest.raises(EmitError):
                emit_root("a", "refused")
            with pytest.raises(EmitError):
                emit_row("a", anchors=[MAKE(None, (), 3)])
        roots.limit = rows.limit = 10
        emit_root([value], value)
        emit_row([value], anchors=[MAKE(None, (), text)])
    assert (roots.rows, roots.ids) == (["before", "after"], ["before", "after"])
    assert (rows.rows, [each._index for each in rows.anchors.parents]) == (["before", "after"], [0, 1])  # type: ignore[union-attr]
    roots.flush()
    assert [ids for ids, _ in roots.pending.settle_all()] == [["before", "after"]]


def test_a_root_that_cannot_be_encoded_fails_behind_its_announcement() -> None:
    """The other roots of its batch are sent."""
    emitter, _, out = rooted(StreamRoutes((2,)))
    for value in ("a", lambda: None, "b"):
        emitter.emit([value], "id")
    emitter.flush()
    (item,) = out.items
    assert isinstance(item, tuple)
    heads = [(data, parse_segment(data, 0)) for data in item[0]]
    assert heads[0][1].kind == SegmentKind.ROOTS
    assert heads[-1][1].kind == SegmentKind.FAIL
    assert [head.rows for _, head in heads] == [3, 1, 1, 1]
    assert (parse_new_roots(*heads[0]).xors != 0).all()


def anchored_to(counts: Sequence[int], tuple_max_bytes: int) -> tuple[list[bytes], list[str]]:
    """The segments of rows that are anchored to so many tuples each, and the errors."""
    errors: list[str] = []
    origin = StreamOrigin(
        3, 0, 1, 1000, 100_000, tuple_max_bytes, lambda stream, row, error: errors.append(f"{stream} {row}: {error}")
    )
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    emitter, tracker = BoltEmitter(origin, out), AckTracker(out)
    batch = tracker.in_work = TrackedBatch(3, sum(counts), 5)
    batch.root_base = 100
    stream = AnchoredStream(0, StreamDefinition("default", ("v",)), StreamRoutes((2,)), origin, tracker)
    stream.limit = stream.full_limit
    emitter.set_streams([stream])
    places = iter(range(sum(counts)))
    for row, count in enumerate(counts):
        emitter.emit([row], anchors=[MAKE(None, (), next(places)) for _ in range(count)])
    return stream.flush(), errors


def test_rows_whose_roots_exceed_a_segment_are_divided() -> None:
    """A window may be anchored to everything that it contains."""
    counts = [10_000] * 6
    segments, errors = anchored_to(counts, 1024)  # room for 32,000 roots
    heads = [parse_segment(each, 0) for each in segments]
    assert not errors
    assert [head.rows for head in heads] == [3, 3]
    roots = [root for head in heads for root in struct.unpack(f"<{3 * 10_000}Q", head.options[OptionTag.ROOTS])]
    assert roots == list(range(100, 100 + sum(counts)))
    assert max(map(len, segments)) <= EngineSettings(tuple_max_bytes=1024, batch_bytes=1024).frame_max_bytes


def test_a_row_with_too_many_roots_is_named_and_the_others_are_sent() -> None:
    """Its anchors fail with it."""
    segments, errors = anchored_to([1, 40_000, 2], 1024)
    (error,) = errors
    assert error.startswith(
        "default 1: the roots of the anchors take 640016 bytes, which exceeds heron.tuple.max.bytes"
    )
    assert "525312 bytes; anchor it to fewer tuples" in error
    heads = [parse_segment(each, 0) for each in segments]
    assert [head.rows for head in heads if head.kind == SegmentKind.TUPLES] == [1, 1]
    assert sum(head.rows for head in heads if head.kind == SegmentKind.FAIL) == 40_000


def test_a_marker_for_more_tasks_than_a_segment_has_is_divided() -> None:
    """The number of destinations has 16 bits."""
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    emitter = SpoutEmitter(origin_of(), out)
    tasks = tuple(range(1, 70_000))
    emitter.send_marker(Marker.END, tasks)
    ((segments, _),) = out.items  # type: ignore[misc]  # no control message
    assert [task for each in segments for task in parse_segment(each, 0).destinations] == list(tasks)


def test_a_row_for_more_tasks_than_a_segment_has_is_divided() -> None:
    """Each task gets it once, tracked or not."""
    tasks = tuple(range(1, 70_000))
    for stream in (
        OutStream(0, StreamDefinition("default", ("v",)), StreamRoutes(tasks), origin_of()),
        anchored(StreamRoutes(tasks))[1],
    ):
        stream.rows.append("row")
        heads = [parse_segment(each, 0) for each in stream.flush()]
        assert [task for head in heads for task in head.destinations] == list(tasks)
    _, roots, _ = rooted(StreamRoutes(tasks))
    roots.rows.append("row")
    roots.ids.append(1)
    heads = [parse_segment(each, 0) for each in roots.flush()]
    assert [task for head in heads if head.kind == SegmentKind.TUPLES for task in head.destinations] == list(tasks)

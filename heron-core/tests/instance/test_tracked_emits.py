"""The generated emits of tracked streams: a rejected emit changes nothing, and rows, ids and anchors stay aligned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import stream_origin
from heron.api.definition import StreamDefinition
from heron.api.tuple import Tuple
from heron.errors import EmitError
from heron.instance.bolt_acks import AckTracker
from heron.instance.data_queue import DataOut, Sleeper
from heron.instance.emitter import BoltEmitter, SpoutEmitter
from heron.instance.out_stream import StreamOrigin
from heron.instance.pending_roots import PendingRoots
from heron.instance.stream_routes import KeyedEdge, KeyMemo, KeySplitter, StreamRoutes
from heron.instance.tracked_batch import TrackedBatch
from heron.instance.tracked_stream import UNANCHORED, AnchoredStream, RootStream
from heron.ipc.frame import SegmentKind, parse_segment
from heron.ipc.tracking_arrays import parse_new_roots
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.planner.key_owners import even_owners

MAKE = Tuple.source("c", "s", 1)


def keyed() -> StreamRoutes:
    splitter = KeySplitter(KeyMemo(even_owners(1024, (8, 9)), single=True))
    return StreamRoutes(splitters=(splitter,), keyed=(KeyedEdge((0,), splitter.memo, splitter.picks),))


def origin_of() -> StreamOrigin:
    return stream_origin(3)


def anchored(routes: StreamRoutes) -> tuple[BoltEmitter, AnchoredStream]:
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1))
    emitter, tracker = BoltEmitter(origin_of(), out), AckTracker(out)
    batch = tracker.in_work = TrackedBatch(3, 9, 5)
    batch.root_base = 100
    stream = AnchoredStream(0, StreamDefinition("default", ("v",)), routes, emitter.origin, tracker)
    stream.limit = stream.full_limit
    emitter.set_streams([stream])
    return emitter, stream


def rooted(routes: StreamRoutes) -> tuple[SpoutEmitter, RootStream, DataOut]:
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1))
    emitter = SpoutEmitter(origin_of(), out)
    stream = RootStream(0, StreamDefinition("default", ("v",)), routes, emitter.origin, PendingRoots(lambda: 0.0))
    stream.limit = stream.full_limit
    emitter.set_streams([stream])
    return emitter, stream, out


EMITS: list[Callable[[BoltEmitter], Callable[..., object]]] = [
    lambda emitter: emitter.emit,
    lambda emitter: emitter.specialised(),  # type: ignore[list-item,return-value]  # it has a default stream
]


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
    _, irregular = stream.anchors.take()
    assert {row: sorted(place for _, place in places) for row, places in irregular.items()} == {1: [1], 3: [1, 2]}


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

"""The anchors of rows: places of the batch in work, tuples of earlier batches, or no anchor."""

from __future__ import annotations

import pytest

from heron.api.tuple import Tuple, TupleHelper
from heron.errors import EmitError
from heron.instance.acks.tracked_batch import UNTRACKED, TrackedBatch
from heron.instance.output.tracked_stream import UNANCHORED, Anchors, checked_anchors

MAKE = Tuple.source("c", "s", 1)


def pooled(place: int, batch: object = None) -> Tuple:
    """A tuple of the batch in work, as a pool gives it; with `batch`, a tuple of a batch that is over."""
    return MAKE(batch, (), place)


def resolved(
    parents: list[Tuple | tuple[Tuple, ...]], current: TrackedBatch | None
) -> tuple[list[tuple[int, TrackedBatch, list[int]]], dict[int, list[tuple[TrackedBatch, int]]]]:
    anchors = Anchors()
    anchors.parents.extend(parents)
    anchors.resolve(current)
    regular, irregular = anchors.take()
    return [(each.start, each.batch, each.places) for each in regular], irregular


def test_one_anchor_each_in_the_batch_in_work_is_a_list_of_places() -> None:
    """This is the usual case. The place of a row without anchor is -1."""
    batch = TrackedBatch(1, 9, 5)
    assert resolved([pooled(3), UNANCHORED, pooled(3)], batch) == ([(0, batch, [3, -1, 3])], {})


def test_rows_of_several_batches_may_wait_for_one_flush() -> None:
    """Each batch is resolved before its tuples are reused."""
    anchors, first, second = Anchors(), TrackedBatch(1, 9, 5), TrackedBatch(1, 9, 6)
    for batch, place in ((first, 1), (second, 2)):
        anchors.parents.append(pooled(place))
        anchors.resolve(batch)
        anchors.resolve(batch)  # a second call has no effect
    regular, irregular = anchors.take()
    assert [(each.start, each.batch, each.places) for each in regular] == [(0, first, [1]), (1, second, [2])]
    assert irregular == {}
    assert anchors.take() == ([], {})


def test_a_kept_tuple_belongs_to_its_own_batch() -> None:
    """The batch in work does not matter."""
    old, current = TrackedBatch(1, 9, 5), TrackedBatch(1, 9, 6)
    kept = pooled(4, old)
    for at_work in (current, None):
        assert resolved([kept], at_work) == ([(0, old, [4])], {})
    assert resolved([pooled(1), kept], current) == ([(0, current, [1]), (1, old, [4])], {})


def test_neighbours_of_a_batch_are_one_list_also_when_it_is_over() -> None:
    """A row for itself costs ten times as much, and components that work beside `process` emit only later."""
    first, second = TrackedBatch(1, 9, 5), TrackedBatch(1, 9, 6)
    kept: list[Tuple | tuple[Tuple, ...]] = [pooled(4, first), pooled(2, first), (pooled(2, first),), UNANCHORED]
    kept += [pooled(0, first), pooled(7, second)]
    assert resolved(kept, None) == ([(0, first, [4, 2, 2]), (4, first, [0]), (5, second, [7])], {})
    pair = (pooled(2, first), pooled(3, first))
    expected = ([(0, first, [1]), (2, first, [4])], {1: [(first, 2), (first, 3)]})
    assert resolved([pooled(1, first), pair, pooled(4, first)], None) == expected


def test_several_anchors_count_once_each() -> None:
    """A tuple that is given twice is one anchor; an empty list is no anchor."""
    old, current = TrackedBatch(1, 9, 5), TrackedBatch(1, 9, 6)
    kept, new = pooled(4, old), pooled(1)
    assert resolved([(kept, new, kept), ()], current) == ([], {0: [(old, 4), (current, 1)]})


@pytest.mark.parametrize("current", [None, TrackedBatch(1, 9, 5)])
def test_an_untracked_tuple_is_no_anchor(current: TrackedBatch | None) -> None:
    """These are ticks, kept tuples of untracked batches, tuples that the author made, and a row without anchor."""
    parents = [UNANCHORED, TupleHelper.make_tick_tuple(), pooled(2, UNTRACKED), Tuple(values=("made",))]
    assert resolved([*parents, tuple(parents)], current) == ([], {})


def test_a_tuple_whose_ack_has_left_is_no_anchor() -> None:
    """No later message could report rows under it. Until its ack leaves, it is an anchor."""
    batch = TrackedBatch(1, 4, 5)
    batch.settle([1, 2])
    assert resolved([pooled(1), pooled(3)], batch) == ([(0, batch, [1, 3])], {})
    batch.note_acks_sent([1])
    assert resolved([pooled(1), pooled(2), pooled(3)], batch) == ([(0, batch, [-1, 2, 3])], {})
    assert resolved([pooled(1, batch), (pooled(2, batch), pooled(1, batch))], None) == ([(1, batch, [2])], {})
    batch.note_acks_sent(None)
    assert resolved([(pooled(0), pooled(3))], batch) == ([], {})


@pytest.mark.parametrize(
    ("anchors", "message"),
    [
        (pooled(1), r"anchors=Tuple\(.* is a tuple itself; give a list: anchors=\[tup\]"),
        (7, r"anchors is a int; give a list of received tuples, such as \[tup\]"),
        (["word"], r"anchors has a str; give what was received"),
        ([pooled(1), None], "anchors has a NoneType"),
        ("w", "anchors has a str"),
    ],
)
def test_anchors_that_are_not_a_list_of_tuples_are_rejected(anchors: object, message: str) -> None:
    """The message shows what to write instead."""
    with pytest.raises(EmitError, match=message):
        checked_anchors(anchors)

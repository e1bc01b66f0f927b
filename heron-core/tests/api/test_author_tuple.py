"""Tuples as bolts see them."""

from __future__ import annotations

import pickle
import sys

from heron.api import Bolt, Tuple, TupleHelper


def test_a_tuple_has_its_source_and_unpacks_like_heronpys() -> None:
    """Programs use the attributes; some unpack the five fields."""
    tup = Tuple.source("word", "default", 4)(id=9, values=("a", 1))
    assert (tup.component, tup.stream, tup.task, tup.id, tup.values) == ("word", "default", 4, 9, ("a", 1))
    assert list(tup) == [9, "word", "default", 4, ("a", 1)]
    assert (tup[4], len(tup)) == (("a", 1), 5)
    assert repr(tup) == "Tuple(id=9, component='word', stream='default', task=4, values=('a', 1))"


def test_tuples_are_equal_only_to_themselves() -> None:
    """The engine compares acked tuples by identity; equal values do not make tuples equal."""
    source = Tuple.source("word", "default", 4)
    one, other = source(1, ("a",)), source(1, ("a",))
    assert one != other
    assert len({one, other}) == 2


def test_a_tuple_has_three_slots() -> None:
    """A __dict__ per tuple would double the cost of the tuple path."""
    tup = Tuple.source("word", "default", 4)()
    assert not hasattr(tup, "__dict__")
    assert sys.getsizeof(tup) <= 64


def test_a_tuple_survives_pickling() -> None:
    """Window bolts save tuples in their state, and a generated class has no importable name."""
    tup = pickle.loads(pickle.dumps(Tuple.source("word", "error", 4)(9, ("a",))))
    assert list(tup) == [9, "word", "error", 4, ("a",)]


def test_is_tick_distinguishes_ticks_from_data() -> None:
    """A bolt may use one method for both."""
    tick = TupleHelper.make_tick_tuple()
    assert (tick.id, tick.component, tick.stream, tick.values) == ("__tick", "__system", "__tick", ())
    assert Bolt.is_tick(tick)
    assert not Bolt.is_tick(Tuple.source("word", "default", 1)())

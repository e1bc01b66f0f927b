"""Where heronpy's classes ask for less than `heron.api`, or do more, so do these."""

from __future__ import annotations

import pytest

from heron.api.custom_grouping import ICustomGrouping as EngineGrouping
from heron.api.tuple import Tuple as EngineTuple
from heron.errors import SerializationError
from heronpy.api.custom_grouping import ICustomGrouping
from heronpy.api.metrics import IMetric, IReducer, MultiReducedMetric, ReducedMetric
from heronpy.api.serializer import IHeronSerializer, PythonSerializer, default_serializer
from heronpy.api.stream import Grouping
from heronpy.api.tuple import Tuple, TupleHelper


class Everyone(ICustomGrouping):
    """Has no `prepare`."""

    def choose_tasks(self, values: tuple[object, ...]) -> list[int]:
        """The task that the tuple names."""
        return [int(str(values[0]))]


class Largest(IReducer):
    """Keeps the largest value of its life, so it has nothing to forget."""

    value: float | None = None

    def reduce(self, value: float) -> None:
        """Takes in a value."""
        self.value = value if self.value is None else max(value, self.value)

    def extract(self) -> float | None:
        """The largest."""
        return self.value


def test_a_grouping_may_leave_out_prepare() -> None:
    """heronpy's classes only call their methods abstract; its programs omit what they do not need."""
    assert Grouping.is_grouping_sane(Grouping.custom(Everyone()))
    assert isinstance(Everyone(), EngineGrouping)
    assert Everyone().choose_tasks((3,)) == [3]


def test_a_grouping_without_a_choice_says_so() -> None:
    """At its first tuple, as nothing else can be right."""
    with pytest.raises(NotImplementedError):
        ICustomGrouping().choose_tasks(())


def test_a_reducer_may_leave_out_init() -> None:
    """And works in both metrics that take one."""
    one, many = ReducedMetric(Largest), MultiReducedMetric(Largest)
    for value in (2, 7, 3):
        one.update(value)
        many.update("key", value)
    assert (one.get_value_and_reset(), many.get_value_and_reset()) == (7, {"key": 7})
    assert (IReducer().extract(), IMetric().get_value_and_reset()) == (None, None)


def test_a_tuple_is_made_of_its_five_fields() -> None:
    """Programs make tuples in tests of their bolts, by position and by name."""
    made = Tuple("id", "words", "default", 4, ["a", 1])
    assert tuple(made) == ("id", "words", "default", 4, ("a", 1))
    named = Tuple(id=None, component="words", stream="errors", task=5, values=[])
    assert (named.component, named.stream, named.task, named.values) == ("words", "errors", 5, ())


def test_what_the_engine_delivers_is_a_tuple() -> None:
    """Programs ask with isinstance; the engine knows nothing of this package."""
    assert isinstance(EngineTuple.source("words", "default", 4)(), Tuple)
    assert isinstance(TupleHelper.make_tick_tuple(), Tuple)
    assert isinstance(Tuple(None, "words", "default", 4, []), EngineTuple)
    assert not isinstance(("id", "words", "default", 4, ()), Tuple)


def test_the_serializer_takes_functions() -> None:
    """heronpy's is cloudpickle: programs put lambdas through it."""
    assert isinstance(default_serializer, IHeronSerializer)
    serializer = PythonSerializer()
    serializer.initialize({})
    twice = serializer.deserialize(serializer.serialize(lambda number: 2 * number))
    assert twice(21) == 42


def test_the_serializer_refuses_what_cannot_travel() -> None:
    """By Heron's own error, in both directions."""
    with pytest.raises(SerializationError, match=r"value of type generator cannot be pickled"):
        default_serializer.serialize(iter([1]).__next__ for _ in range(1))
    with pytest.raises(SerializationError, match=r"3 bytes cannot be unpickled"):
        default_serializer.deserialize(b"\x80\x05?")

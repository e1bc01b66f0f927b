"""Classes of heronpy that ask for less than those of `heron.api`, or do more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from heron.api.definition import GroupingKind
from heron.api.stream import ICustomGrouping as EngineGrouping
from heron.api.tuple import Tuple as EngineTuple
from heron.clock import SystemClock
from heron.errors import SerializationError, TopologyError
from heron.planner.verify import verify
from heron_simulator.simulation import Simulation
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.component.component_spec import HeronComponentSpec
from heronpy.api.custom_grouping import ICustomGrouping
from heronpy.api.metrics import IMetric, IReducer, MultiReducedMetric, ReducedMetric
from heronpy.api.serializer import IHeronSerializer, PythonSerializer, default_serializer
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping, Stream
from heronpy.api.task_hook import ITaskHook
from heronpy.api.topology import TopologyBuilder
from heronpy.api.topology_context import TopologyContext
from heronpy.api.tuple import Tuple, TupleHelper


class Everyone(ICustomGrouping):
    """A grouping without `prepare`."""

    def choose_tasks(self, values: tuple[object, ...]) -> list[int]:
        """The task that the tuple names."""
        return [int(str(values[0]))]


class Largest(IReducer):
    """Keeps the largest value of all periods, so it needs no `init`."""

    value: float | None = None

    def reduce(self, value: float) -> None:
        """Takes in a value."""
        self.value = value if self.value is None else max(value, self.value)

    def extract(self) -> float | None:
        """The largest."""
        return self.value


def test_a_grouping_may_omit_prepare() -> None:
    """heronpy marks methods as abstract without effect, so its programs omit some."""
    assert Grouping.is_grouping_sane(Grouping.custom(Everyone()))
    assert isinstance(Everyone(), EngineGrouping)
    assert Everyone().choose_tasks((3,)) == [3]


def test_a_grouping_without_choose_tasks_is_refused_at_its_first_tuple() -> None:
    """There is no sensible default choice."""
    with pytest.raises(NotImplementedError):
        ICustomGrouping().choose_tasks(())


def test_a_reducer_may_omit_init() -> None:
    """Both metrics that take a reducer accept it."""
    one, many = ReducedMetric(Largest), MultiReducedMetric(Largest)
    for value in (2, 7, 3):
        one.update(value)
        many.update("key", value)
    assert (one.get_value_and_reset(), many.get_value_and_reset()) == (7, {"key": 7})
    assert (IReducer().extract(), IMetric().get_value_and_reset()) == (None, None)


def test_the_constructor_of_a_tuple_takes_its_five_fields() -> None:
    """Programs construct tuples in tests of their bolts, by position and by name."""
    made = Tuple("id", "words", "default", 4, ["a", 1])
    assert tuple(made) == ("id", "words", "default", 4, ("a", 1))
    named = Tuple(id=None, component="words", stream="errors", task=5, values=[])
    assert (named.component, named.stream, named.task, named.values) == ("words", "errors", 5, ())


def test_a_tuple_of_the_engine_is_an_instance_of_heronpys_tuple() -> None:
    """Programs call isinstance; the engine does not import this package."""
    assert isinstance(EngineTuple.source("words", "default", 4)(), Tuple)
    assert isinstance(TupleHelper.make_tick_tuple(), Tuple)
    assert isinstance(Tuple(None, "words", "default", 4, []), EngineTuple)
    assert not isinstance(("id", "words", "default", 4, ()), Tuple)


def test_the_serializer_takes_functions() -> None:
    """heronpy uses cloudpickle, and programs serialise lambdas with it."""
    assert isinstance(default_serializer, IHeronSerializer)
    serializer = PythonSerializer()
    serializer.initialize()
    serializer.initialize({})
    twice = serializer.deserialize(serializer.serialize(lambda number: 2 * number))
    assert twice(21) == 42


def test_the_serializer_raises_herons_own_error() -> None:
    """Both directions translate the errors of pickle."""
    with pytest.raises(SerializationError, match=r"value of type generator cannot be pickled"):
        default_serializer.serialize(iter([1]).__next__ for _ in range(1))
    with pytest.raises(SerializationError, match=r"3 bytes cannot be unpickled"):
        default_serializer.deserialize(b"\x80\x05?")


class Words(Spout):
    """A spout without outputs."""

    def next_tuple(self) -> None:
        """Nothing to emit."""


class Count(Bolt):
    """A bolt without outputs."""

    def process(self, tup: EngineTuple) -> None:
        """Nothing to do."""


def test_a_class_has_outputs_only_after_it_sets_them() -> None:
    """Programs that extend heronpy test ``hasattr(cls, "outputs")`` before they append to it."""
    assert [hasattr(cls, "outputs") for cls in (Spout, Bolt, Words, Count)] == [False] * 4
    assert Words.spec(name="words", optional_outputs=["word"]).get_out_streamids() == {"default"}


def test_names_may_begin_with_underscores() -> None:
    """heronpy reserves no prefix; only the names of tick tuples are refused here."""
    builder = TopologyBuilder("internal")
    words = HeronComponentSpec("__words", "words.Words", is_spout=True, par=1, outputs=[Stream(["word"], "__out")])
    inputs = {words["__out"]: Grouping.SHUFFLE}
    builder.add_spec(words, HeronComponentSpec("__count", "words.Count", is_spout=False, par=1, inputs=inputs))
    verify(builder.build())
    builder.add_spec(HeronComponentSpec("__system", "words.Count", is_spout=False, par=1, inputs=inputs))
    with pytest.raises(TopologyError, match=r"component name '__system' is reserved for tick tuples; choose another"):
        verify(builder.build())


def test_a_spec_names_its_class_by_a_dotted_path() -> None:
    """Programs read `python_class_path`, and heronpy joins module and class with a dot."""
    assert Count.spec(name="count").python_class_path == f"{__name__}.Count"


def test_a_class_path_needs_no_dot() -> None:
    """heronpy's constructor accepts any string; a bare name is a class of the program's own file."""
    spec = HeronComponentSpec("count", "Count", is_spout=False, par=1)
    assert (spec.python_class_path, spec.entry) == ("Count", "__main__:Count")


class Curious(Bolt):
    """Asks its context in `initialize`."""

    asked: ClassVar[list[tuple[str, str, GroupingKind]]] = []
    hooked: ClassVar[list[str]] = []

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Ask for the sources, and add a hook by the name of the parameter."""
        for source, grouping in context.get_this_sources().items():
            self.asked.append((source.component_name, source.id, grouping.kind))
        context.add_task_hook(task_hook=Noted())

    def process(self, tup: EngineTuple) -> None:
        """Nothing to do."""


class Noted(ITaskHook):
    """A hook that notes its component."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Note the component."""
        Curious.hooked.append(context.get_component_id())


def test_a_context_has_heronpys_names() -> None:
    """The keys of the sources are ``StreamId(id, component_name)`` in heronpy; the hook is `task_hook`."""
    builder = TopologyBuilder("curious")
    words = builder.add_spout("words", Words, 1, optional_outputs=["word"])
    builder.add_bolt("curious", Curious, 1, inputs=[words])
    with Simulation(builder, clock=SystemClock()):
        assert Curious.asked == [("words", "default", GroupingKind.SHUFFLE)]
        assert Curious.hooked == ["curious"]

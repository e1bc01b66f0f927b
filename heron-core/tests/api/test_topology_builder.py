"""Builders and specs: the definitions that they make, and their refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from heron.api import (
    BaseSpout,
    Bolt,
    GlobalStreamId,
    Grouping,
    HeronComponentSpec,
    ICustomGrouping,
    Spout,
    Stream,
    TopologyBuilder,
    TopologyContext,
    TumblingWindowBolt,
    Tuple,
)
from heron.api.definition import ComponentKind, GroupingDefinition, GroupingKind, InputDefinition, StreamDefinition
from heron.errors import HeronError


class Words(Spout):
    outputs = ("word", Stream(["line"], "error"))

    def next_tuple(self) -> None:
        self.emit(["a"])


class Count(Bolt):
    outputs = ("word", "count")

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[0], 1])


class Lazy(Spout):
    outputs = ("word",)


class Idle(Bolt):
    pass


class IdleWindow(TumblingWindowBolt):
    pass


class Bare(BaseSpout):
    outputs = ("word",)


class Letters(Spout):
    outputs = "word"

    def next_tuple(self) -> None: ...


class Directed(Spout):
    outputs = (Stream(["word"], direct=True),)

    def next_tuple(self) -> None: ...


class First(ICustomGrouping):
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None: ...

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        return []


def wrong(value: object) -> Any:  # noqa: ANN401 - authors may not use a type checker
    return value


def words() -> tuple[TopologyBuilder, HeronComponentSpec]:
    builder = TopologyBuilder("words")
    return builder, builder.add_spout("word", Words, 2)


def test_a_definition_holds_the_topology_in_the_order_of_declaration() -> None:
    """Other processes know the topology only from this value."""
    builder, word = words()
    builder.set_config({"topology.stmgrs": "2", "mine": (1, 2)})
    inputs = {word: Grouping.fields("word"), word["error"]: Grouping.ALL, GlobalStreamId("else", "x"): Grouping.NONE}
    builder.add_bolt("count", Count, 3, inputs=inputs, config={"k": 1}, optional_outputs=["more"])
    definition = builder.build()

    assert (definition.name, definition.config) == ("words", {"topology.stmgrs": 2, "mine": [1, 2]})
    spout, bolt = definition.components
    assert (spout.name, spout.kind, spout.entry, spout.parallelism) == (
        "word",
        ComponentKind.SPOUT,
        f"{__name__}:Words",
        2,
    )
    assert spout.outputs == (StreamDefinition("default", ("word",)), StreamDefinition("error", ("line",)))
    assert bolt.outputs == (StreamDefinition("default", ("word", "count", "more")),)
    assert bolt.inputs == (
        InputDefinition("word", "default", GroupingDefinition(GroupingKind.FIELDS, ("word",))),
        InputDefinition("word", "error", GroupingDefinition(GroupingKind.ALL)),
        InputDefinition("else", "x", GroupingDefinition(GroupingKind.NONE)),
    )
    assert bolt.config == {"k": 1}


def test_a_list_of_inputs_means_shuffle() -> None:
    """heronpy does the same."""
    builder, word = words()
    builder.add_bolt("count", Count, 1, inputs=[word, word["error"]])
    kinds = [each.grouping.kind for each in builder.build().component("count").inputs]
    assert kinds == [GroupingKind.SHUFFLE, GroupingKind.SHUFFLE]


def test_specs_may_exist_before_the_builder() -> None:
    """This is the other way of heronpy; a spec lists its streams."""
    word = Words.spec(name="word", par=2, optional_outputs=[Stream(name="late")])
    assert word.get_out_streamids() == {"default", "error", "late"}
    assert word["error"] == GlobalStreamId("word", "error")
    assert hash(word["error"]) == hash(GlobalStreamId(word, "error"))
    builder = TopologyBuilder("words")
    builder.add_spec(word, Count.spec(name="count", inputs=[word]))
    assert [each.name for each in builder.build().components] == ["word", "count"]


def test_a_spec_may_name_its_class_by_a_path() -> None:
    """The constructor of heronpy takes a dotted path."""
    spec = HeronComponentSpec("word", "pkg.mod.Words", True, 1, outputs=["word"])
    assert (spec.python_class_path, spec.definition().entry) == ("pkg.mod.Words", "pkg.mod:Words")


def test_a_class_path_without_a_dot_names_a_class_of_the_authors_file() -> None:
    """heronpy accepts such a path; the loader puts the module of the file in the place of `__main__`."""
    assert HeronComponentSpec("word", "Words", True, 1, outputs=["word"]).definition().entry == "__main__:Words"
    assert Grouping.custom("First").definition.entry == "__main__:First"


def test_a_spec_of_a_class_has_its_dotted_path() -> None:
    """Programs read `python_class_path`, which is ``module.Class`` in heronpy."""
    assert Words.spec(name="word").python_class_path == f"{__name__}.Words"


def test_a_component_name_may_begin_with_underscores() -> None:
    """heronpy reserves no prefix."""
    builder, word = words()
    builder.add_bolt("__count", Count, 1, inputs=[word])
    assert builder.build().component("__count").parallelism == 1


def test_a_class_without_outputs_has_no_such_attribute() -> None:
    """Programs test ``hasattr(cls, "outputs")``, which is false in heronpy until a class sets it."""
    assert not hasattr(Idle, "outputs")
    assert not hasattr(Spout, "outputs")
    assert Count.outputs == ("word", "count")


def test_a_stream_has_heronpys_names_of_a_source() -> None:
    """The keys of heronpy's `get_sources` have the attributes `id` and `component_name`."""
    source = GlobalStreamId("word", "error")
    assert (source.component_name, source.id) == (source.component_id, source.stream_id) == ("word", "error")


def test_grouping_objects_stay_reachable() -> None:
    """An instance loads the file again and gets the object of an input."""
    builder, word = words()
    grouper = First()
    builder.add_bolt("count", Count, 1, inputs={word: Grouping.custom(grouper)})
    assert builder.live_grouping("count", "word", "default") is grouper
    for place in (("count", "word", "error"), ("other", "word", "default")):
        with pytest.raises(HeronError, match="has no grouping object"):
            builder.live_grouping(*place)


def one_bolt(**changes: object) -> None:
    builder, word = words()
    arguments: dict[str, Any] = {"name": "count", "bolt_cls": Count, "par": 1, "inputs": {word: Grouping.SHUFFLE}}
    arguments.update(changes)
    builder.add_bolt(**arguments)
    builder.build()


def one_spout(**changes: object) -> None:
    builder = TopologyBuilder("words")
    arguments: dict[str, Any] = {"name": "word", "spout_cls": Words, "par": 1, **changes}
    builder.add_spout(**arguments)
    builder.build()


def twice() -> None:
    builder, word = words()
    builder.add_bolt("word", Count, 1, inputs=[word])


def spoutless() -> None:
    builder = TopologyBuilder("words")
    builder.add_spec(Count.spec(name="count", inputs=[GlobalStreamId("word", "default")]))
    builder.build()


def inside_a_function() -> None:
    class Hidden(Words):
        pass

    one_spout(spout_cls=Hidden)


def same_input_twice() -> None:
    builder, word = words()
    builder.add_bolt("count", Count, 1, inputs=[word, word["default"]])
    builder.build()


def direct_stream() -> None:
    builder = TopologyBuilder("words")
    spout = builder.add_spout("word", Directed, 1)
    builder.add_bolt("count", Count, 1, inputs={spout: Grouping.SHUFFLE})
    builder.build()


def renamed() -> None:
    builder, _ = words()
    builder.set_config({"topology.name": "other"})
    builder.build()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopologyBuilder("a/b"), "topology 'a/b': a name has no slash and no dot"),
        (lambda: TopologyBuilder("a.b"), "topology 'a.b': a name has no slash and no dot"),
        (lambda: TopologyBuilder(""), "topology: the name '' is not a string with at least one character"),
        (lambda: TopologyBuilder("Topology"), "topology 'Topology': this name is reserved"),
        (lambda: one_spout(name="a.b"), "topology 'words', component 'a.b': a name has no slash and no dot"),
        (lambda: one_spout(name="config"), "component 'config': this name is reserved"),
        (lambda: one_spout(name=3), "component: the name 3 is not a string"),
        (lambda: one_spout(par=0), "component 'word': par is 0; give the number of tasks, an int of at least 1"),
        (lambda: one_spout(par="2"), "par is '2'"),
        (lambda: one_spout(par=True), "par is True"),
        (lambda: one_spout(spout_cls=Count), "is not a spout; give a class derived from Spout"),
        (lambda: one_spout(spout_cls=Words(None)), "is not a spout"),
        (lambda: one_bolt(bolt_cls=Words), "is not a bolt; give a class derived from Bolt"),
        (lambda: one_spout(spout_cls=Lazy), "component 'word': Lazy of .* does not define next_tuple"),
        (lambda: one_spout(spout_cls=Bare), "Bare of .* does not define next_tuple"),
        (lambda: one_bolt(bolt_cls=Idle), "component 'count': Idle of .* does not define process; define it"),
        (
            lambda: one_bolt(bolt_cls=IdleWindow, config={IdleWindow.WINDOW_DURATION_SECS: 1}),
            "IdleWindow of .* does not define processWindow",
        ),
        (lambda: one_spout(spout_cls=Letters), "component 'word': outputs 'word' is not a list or tuple"),
        (lambda: one_spout(config={"a": {1}}), "component 'word': a: a value of type set"),
        (lambda: one_spout(config={"topology.stmgrs": 1}), "is a setting of the whole topology"),
        (lambda: HeronComponentSpec("w", "a.W", True, 1).definition(), "a spout needs at least one output"),
        (lambda: HeronComponentSpec("w", "a b", True, 1), "'a b' does not name a class; give 'module:Class'"),
        (lambda: HeronComponentSpec("w", wrong(3), True, 1), "3 does not name a class; give 'module:Class'"),
        (lambda: one_bolt(inputs=None), "component 'count': a bolt needs at least one input"),
        (lambda: one_bolt(inputs={}), "a bolt needs at least one input"),
        (lambda: one_bolt(inputs="word"), "inputs 'word' is not a dict or list"),
        (lambda: one_bolt(inputs=["word"]), "the input 'word' is neither a spec nor a GlobalStreamId"),
        (lambda: one_bolt(inputs={GlobalStreamId("a", "b"): "shuffle"}), "input a:b: 'shuffle' is not a grouping"),
        (lambda: words()[1]["eror"], r"no output stream 'eror' \(nearest: 'error'\); known: 'default', 'error'"),
        (lambda: GlobalStreamId(wrong(3), "a"), "3 is neither a component's name nor a spec"),
        (lambda: GlobalStreamId("a", wrong(3)), "3 is not a stream's name"),
        (lambda: TopologyBuilder("w").add_spec(wrong("word")), "topology 'w': 'word' is not a spec"),
        (lambda: TopologyBuilder("w").add_spec(Words.spec()), "it has no name; give spec"),
        (lambda: TopologyBuilder("w").set_config(wrong([1])), "topology 'w': the configuration .* is not a dict"),
        (lambda: TopologyBuilder("w").set_config({"topology.x": 1}), "topology 'w': unknown key 'topology.x'"),
        (lambda: TopologyBuilder("w").build(), "topology 'w': there is no spout"),
        (lambda: Words.spec(name="w").get_protobuf(), "get_protobuf is not supported"),
        (twice, "there are two components of this name"),
        (spoutless, "there is no spout"),
        (inside_a_function, "is defined inside a function, so instances cannot import it"),
        (same_input_twice, "the input word:default is given twice"),
        (direct_stream, "a direct stream is consumed with shuffle; use Grouping.DIRECT"),
        (renamed, "topology.name is 'other'; remove the key"),
    ],
)
def test_a_topology_that_cannot_run_is_refused_with_place_and_remedy(make: Callable[[], object], message: str) -> None:
    """The author reads one sentence instead of a traceback from an instance."""
    with pytest.raises(HeronError, match=message):
        make()

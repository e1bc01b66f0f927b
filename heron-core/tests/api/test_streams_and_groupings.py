"""Declared streams, and every kind of grouping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from heron.api import Grouping, ICustomGrouping, Stream, TopologyContext
from heron.api.definition import GroupingKind, StreamDefinition
from heron.api.stream import merged_outputs
from heron.errors import ConfigError, HeronError, TopologyError


class ToAll(ICustomGrouping):
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        self.tasks = list(target_tasks)

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        return self.tasks


def wrong(value: object) -> Any:  # noqa: ANN401 - authors may not use a type checker
    return value


def test_plain_names_are_fields_of_the_default_stream() -> None:
    """Optional outputs come last, so names and streams may have any order."""
    outputs: list[str | Stream] = ["word", Stream(["line"], "error"), "count", Stream(["more"])]
    assert merged_outputs(outputs, "here") == (
        StreamDefinition("default", ("word", "count", "more")),
        StreamDefinition("error", ("line",)),
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stream(fields="word"), "fields 'word' is not a list or tuple"),
        (lambda: Stream(fields=wrong([1])), "field: the name 1 is not a string"),
        (lambda: Stream(fields=["a", "a"]), "field 'a' is named twice"),
        (lambda: Stream(name=""), "the name '' is not a string with at least one character"),
        (lambda: Stream(name=wrong(None)), "the name None is not a string"),
        (lambda: Stream(direct=wrong("yes")), "direct is 'yes'; give True or False"),
        (lambda: merged_outputs("word", "here"), "here: outputs 'word' is not a list or tuple"),
        (lambda: merged_outputs(wrong([3]), "here"), "here: the output 3 is neither a field name nor a Stream"),
        (
            lambda: merged_outputs([Stream(name="e"), Stream(name="e")], "here"),
            "here: the stream 'e' is declared twice",
        ),
        (lambda: merged_outputs(["a", "a"], "here"), "here, stream 'default': the field 'a' is named twice"),
        (Grouping.fields, "no field is given"),
        (lambda: Grouping.fields([]), "no field is given"),
        (lambda: Grouping.fields(wrong(1)), "field: the name 1 is not a string"),
        (Grouping.PARTIAL_KEY, "no field is given"),
        (lambda: Grouping.custom(wrong(None)), "None is not an ICustomGrouping"),
        (lambda: Grouping.custom(wrong(int)), "<class 'int'> is not an ICustomGrouping"),
        (lambda: Grouping.custom(".Lonely"), "'.Lonely' does not name a class; give 'module:Class'"),
        (lambda: Grouping.custom(""), "'' does not name a class; give 'module:Class'"),
        (lambda: Grouping.custom(ToAll(), {"a": 1}), "an object takes no arguments"),
        (lambda: Grouping.custom_serialized(b"xx", False), "plans hold no objects"),
        (lambda: Grouping.custom_object("a.B", []), "the Java class 'a.B' is not supported"),
    ],
)
def test_a_wrong_argument_is_refused_with_place_and_remedy(make: Callable[[], object], message: str) -> None:
    """Each of these would otherwise fail later, in an instance."""
    with pytest.raises(TopologyError, match=message):
        make()


def test_constants_are_groupings() -> None:
    """GLOBAL is another name of LOWEST. LOCAL_OR_SHUFFLE differs from SHUFFLE, unlike in heronpy."""
    names = ["SHUFFLE", "ALL", "LOWEST", "NONE", "DIRECT", "LOCAL_OR_SHUFFLE"]
    assert [getattr(Grouping, name).definition.kind.name for name in names] == names
    assert Grouping.GLOBAL is Grouping.LOWEST
    assert Grouping.is_grouping_sane(Grouping.DIRECT)
    assert not Grouping.is_grouping_sane("shuffle")


def test_keyed_groupings_take_names_or_a_list() -> None:
    """heronpy accepts both."""
    assert Grouping.fields("a", "b") == Grouping.fields(["a", "b"])
    assert Grouping.fields("a", "b").definition.fields == ("a", "b")
    assert Grouping.PARTIAL_KEY("a").definition.kind is GroupingKind.PARTIAL_KEY


def test_a_custom_grouping_travels_by_name_with_its_arguments() -> None:
    """A plan holds no objects: class and JSON arguments are enough to make one anywhere."""
    for given in (ToAll, f"{__name__}.ToAll", f"{__name__}:ToAll"):
        definition = Grouping.custom(given, {"bounds": ("a", "b")}).definition
        assert definition.entry == f"{__name__}:ToAll"
        assert definition.arguments == {"bounds": ["a", "b"]}


def test_a_custom_grouping_object_stays_with_its_author() -> None:
    """The instance loads the author's file again and takes the object from there."""
    grouper = ToAll()
    grouping = Grouping.custom(grouper)
    assert grouping.live is grouper
    assert grouping.definition.entry is None


def test_arguments_that_are_not_json_are_refused_with_their_path() -> None:
    """A configuration may hold many values."""
    with pytest.raises(ConfigError, match=r"Grouping.custom: arguments.bounds\[1\]: a value of type set"):
        Grouping.custom(ToAll, {"bounds": ["a", {"b"}]})


def test_every_refusal_is_a_heron_error() -> None:
    """Commands print these errors without a traceback and exit with 2."""
    assert issubclass(TopologyError, HeronError)
    assert issubclass(ConfigError, HeronError)

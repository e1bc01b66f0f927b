"""Topologies as classes, and the capture of both kinds of topologies."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from heron.api import (
    Bolt,
    Grouping,
    ICustomGrouping,
    Spout,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    capture_topologies,
)
from heron.errors import TopologyError, UsageError


class Words(Spout):
    outputs = ("word",)

    def next_tuple(self) -> None: ...


class Count(Bolt):
    outputs = ("word", "count")

    def process(self, tup: Tuple) -> None: ...


class First(ICustomGrouping):
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None: ...

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        return []


class WordCount(Topology):
    config: ClassVar = {"topology.stmgrs": 2}

    word = Words.spec(par=2)
    count = Count.spec(inputs={word: Grouping.fields("word")})
    last = Count.spec(name="final", inputs=[count["default"]])


def test_attributes_name_the_components_and_the_class_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec may be an input before it has its name; heronpy also needed an environment variable."""
    monkeypatch.delenv("HERON_OPTIONS", raising=False)
    definition = WordCount.definition()
    assert (definition.name, definition.config) == ("WordCount", {"topology.stmgrs": 2})
    assert [each.name for each in definition.components] == ["word", "count", "final"]
    assert definition.component("final").inputs[0].component == "count"


def test_a_derived_topology_has_the_components_of_its_base() -> None:
    """Plain inheritance applies: attributes that the class does not replace stay."""

    class Wider(WordCount):
        topology_name = "wider-count"
        word = Words.spec(par=5)
        count = Count.spec(inputs=[word])

    definition = Wider.definition()
    assert definition.name == "wider-count"
    assert [(each.name, each.parallelism) for each in definition.components] == [
        ("word", 5),
        ("count", 1),
        ("final", 1),
    ]


def test_an_incomplete_class_is_refused_at_its_use_not_at_its_definition() -> None:
    """A base class without a spout is legal; heronpy raised during the import."""

    class Half(Topology):
        count = Count.spec(inputs=[WordCount.word])

    class Wrong(Topology):
        config = Words.spec()  # type: ignore[assignment]  # this mistake is the subject

    with pytest.raises(TopologyError, match="topology 'Half': there is no spout"):
        Half.definition()
    with pytest.raises(TopologyError, match="class Wrong: 'config' is reserved"):
        Wrong.definition()
    with pytest.raises(TopologyError, match="class Topology: it is the base of topologies"):
        Topology.definition()


def test_grouping_objects_of_a_class_stay_reachable() -> None:
    """Classes keep them as builders do."""
    grouper = First()

    class Custom(Topology):
        word = Words.spec()
        count = Count.spec(inputs={word: Grouping.custom(grouper)})

    assert Custom.live_grouping("count", "word", "default") is grouper


def a_builder() -> TopologyBuilder:
    builder = TopologyBuilder("words")
    builder.add_spout("word", Words, 1)
    return builder


def test_what_a_file_submits_is_captured_in_order() -> None:
    """A capture holds builders and classes, and only those of its own block."""
    builder = a_builder()
    with capture_topologies() as outer:
        builder.build_and_submit()
        with capture_topologies() as inner:
            WordCount.write()
    assert [each.topology_name for each in outer] == ["words"]
    assert inner == [WordCount]
    assert outer[0].definition() == builder.build()


def test_python_alone_cannot_run_a_topology() -> None:
    """The error of `python FILE` names the right command."""
    for submit in (a_builder().build_and_submit, WordCount.write):
        with pytest.raises(UsageError, match=r"Python alone cannot run it; run this file with `heron run FILE`"):
            submit()


def test_a_capture_holds_for_its_own_thread() -> None:
    """Two loaders in one process, as in the simulator's tests, stay separate."""
    refused: list[bool] = []

    def submit() -> None:
        try:
            a_builder().build_and_submit()
        except UsageError:
            refused.append(True)

    with capture_topologies() as captured:
        thread = threading.Thread(target=submit)
        thread.start()
        thread.join(10)
    assert (refused, captured) == ([True], [])


def test_a_topology_that_does_not_build_is_not_captured() -> None:
    """The error appears at the author's line, not in the loader."""
    with capture_topologies() as captured, pytest.raises(TopologyError, match="there is no spout"):
        TopologyBuilder("words").build_and_submit()
    assert captured == []

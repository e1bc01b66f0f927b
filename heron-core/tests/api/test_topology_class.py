"""Topologies as classes, and how both kinds leave the author's file."""

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
    """Also where a spec was used as an input before it had its name, and without any environment variable."""
    monkeypatch.delenv("HERON_OPTIONS", raising=False)
    definition = WordCount.definition()
    assert (definition.name, definition.config) == ("WordCount", {"topology.stmgrs": 2})
    assert [each.name for each in definition.components] == ["word", "count", "final"]
    assert definition.component("final").inputs[0].component == "count"


def test_a_derived_topology_has_the_components_of_its_base() -> None:
    """Plain inheritance: what is not replaced stays."""

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


def test_a_class_that_is_no_topology_is_refused_when_it_is_used_not_when_it_is_defined() -> None:
    """Base classes without a spout are legal Python; heronpy raised in the middle of an import."""

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
    """As those of a builder."""
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
    """The loader of `heron run` sees builders and classes alike, and each capture only its own."""
    builder = a_builder()
    with capture_topologies() as outer:
        builder.build_and_submit()
        with capture_topologies() as inner:
            WordCount.write()
    assert [each.topology_name for each in outer] == ["words"]
    assert inner == [WordCount]
    assert outer[0].definition() == builder.build()


def test_python_alone_cannot_run_a_topology() -> None:
    """`python FILE` must say what to type instead."""
    for submit in (a_builder().build_and_submit, WordCount.write):
        with pytest.raises(UsageError, match=r"Python alone cannot run it; run this file with `heron run FILE`"):
            submit()


def test_a_capture_is_its_threads_own() -> None:
    """Two loaders in one process (the simulator's tests) do not see each other's topologies."""
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


def test_a_topology_that_does_not_build_is_not_handed_in() -> None:
    """The error belongs to the author's line, not to the loader."""
    with capture_topologies() as captured, pytest.raises(TopologyError, match="there is no spout"):
        TopologyBuilder("words").build_and_submit()
    assert captured == []

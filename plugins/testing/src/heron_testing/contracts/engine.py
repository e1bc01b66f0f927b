"""The contract suite of engines. Subclass `PipelineEngineContract` and name the driver.

The cases compile pipelines and run none: what runs them belongs to the engine's own tests.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from heron.errors import TopologyError
from heron.planner.verify import verify
from heron.spi.engine import PIPELINE_KEY, PipelineEngine
from heron_testing.contracts.driver import DriverContract

if TYPE_CHECKING:  # tests of other families need not have it
    from heron_streamlet.plan.graph import Graph

__all__ = ["PipelineEngineContract"]

_CONFIG: Mapping[str, object] = {"my.own.key": "kept"}


class PipelineEngineContract(DriverContract):
    """Cases for `heron.spi.engine.PipelineEngine`."""

    family = "engine"

    @pytest.fixture
    def engine(self, options: dict[str, object]) -> PipelineEngine:
        """The engine under test."""
        opened = self.driver_class.open(options)
        assert isinstance(opened, PipelineEngine)
        return opened

    def test_a_pipeline_becomes_a_topology_that_can_run(self, engine: PipelineEngine) -> None:
        """The command packs, submits and watches it as any other."""
        definition = engine.compile("words", _words(), _CONFIG).definition()
        verify(definition)
        assert definition.name == "words"
        assert definition.config["my.own.key"] == "kept"
        shown = definition.config[PIPELINE_KEY]
        assert isinstance(shown, dict)
        assert shown["operators"][0] == "source-1 x 1"
        assert shown["stages"]

    def test_compiling_changes_nothing(self, engine: PipelineEngine) -> None:
        """`heron plan` compiles, and a later run compiles again."""
        first = engine.compile("words", _words(), _CONFIG).definition()
        second = engine.compile("words", _words(), _CONFIG).definition()
        shapes = [[(each.name, each.parallelism, each.entry) for each in one.components] for one in (first, second)]
        assert shapes[0] == shapes[1]

    def test_what_is_no_pipeline_is_refused(self, engine: PipelineEngine) -> None:
        """The library of the author may be newer than the engine."""
        with pytest.raises(TopologyError, match="words"):
            engine.compile("words", object(), _CONFIG)

    def test_a_function_that_cannot_travel_is_named(self, engine: PipelineEngine) -> None:
        """It would fail on a worker, where nobody looks."""
        lock = threading.Lock()
        with pytest.raises(TopologyError, match=r"'locked' \(.*engine\.py:\d+\)"):
            engine.compile("words", _words(lock), _CONFIG)

    def test_a_source_without_end_is_read_or_refused(self, engine: PipelineEngine) -> None:
        """An engine for the past would wait for ever; the capability tells which engine this is."""
        pipeline = _endless()
        if "live" in engine.capabilities:
            verify(engine.compile("endless", pipeline, _CONFIG).definition())
        else:
            with pytest.raises(TopologyError, match=r"operator 'endless' \(.*:\d+\).*end"):
                engine.compile("endless", pipeline, _CONFIG)


def _words(held: object = None) -> Graph:
    from heron_streamlet import Builder, Items  # noqa: PLC0415  # as above

    builder = Builder()
    words = builder.new_source(Items(["a b", "b"])).flat_map(str.split)
    if held is not None:
        words = words.map(lambda word: (held, word)[1]).set_name("locked")
    words.key_by(lambda word: word).count_by_key().log()
    return builder.graph()


def _endless() -> Graph:
    from heron_streamlet import Builder, Items  # noqa: PLC0415  # as above

    builder = Builder()
    builder.new_source(Items(["a"], bounded=False)).set_name("endless").log()
    return builder.graph()

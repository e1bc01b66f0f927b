"""Spouts and bolts as objects: their calls of the collector, and their logger."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

import pytest

from heron.api import Bolt, BoltCollector, Spout, SpoutCollector, Tuple
from heron.errors import EmitError, UsageError

Calls: TypeAlias = list[tuple[object, ...]]


def test_a_spout_emits_through_its_collector(spout_collector: SpoutCollector, calls: Calls) -> None:
    """The collector receives every argument; the spout receives the task ids."""
    spout = Spout(delegate=spout_collector)
    assert spout.emit(["a"]) is None
    assert spout.emit(("b",), "id", "error", 3, True) == [7, 8]
    spout.end()
    assert calls == [
        ("emit", ["a"], None, "default", None, False),
        ("emit", ("b",), "id", "error", 3, True),
        ("end",),
    ]


def test_a_bolt_emits_acks_and_fails_through_its_collector(bolt_collector: BoltCollector, calls: Calls) -> None:
    """In heronpy, the emit of a bolt returns None."""
    bolt = Bolt(delegate=bolt_collector)
    tup = Tuple()
    assert bolt.emit(["a"], anchors=[tup], need_task_ids=True) == [7, 8]
    bolt.ack(tup)
    bolt.fail(tup)
    assert calls == [("emit", ["a"], "default", [tup], None, True), ("ack", tup), ("fail", tup)]


def test_columns_go_through_the_collector(
    spout_collector: SpoutCollector, bolt_collector: BoltCollector, calls: Calls
) -> None:
    """A batch has the arguments of a tuple, and a spout may give an id for each row."""
    batch = {"word": ["a", "b"]}
    Spout(delegate=spout_collector).emit_columns(batch, "id", stream="errors")
    Spout(delegate=spout_collector).emit_columns(batch, ids=[1, 2])
    Bolt(delegate=bolt_collector).emit_columns(batch, anchors=[], direct_task=3)
    assert calls == [
        ("emit_columns", batch, "id", "errors", None, None),
        ("emit_columns", batch, None, "default", None, [1, 2]),
        ("emit_columns", batch, "default", [], 3),
    ]


class Emits(Spout):
    """Says that it emits columns."""

    columns = True


class Receives(Bolt):
    """Receives columns."""

    def process_columns(self, batch: object) -> None:
        """Receives."""


class Other(Bolt):
    """Has an attribute of its own."""

    columns = ["a", "b"]  # type: ignore[assignment]  # noqa: RUF012  # as a class may have had before


def test_a_component_says_whether_it_uses_columns() -> None:
    """By its class attribute, or by the method that receives them; an attribute of another meaning says nothing."""
    assert [each.uses_columns() for each in (Spout, Bolt, Emits, Receives, Other)] == [False, False, True, True, False]
    assert Emits.spec("emits").config_of_class() == {"topology.columns": True}
    assert Other.spec("other").config_of_class() == {}


def test_a_component_with_its_own_constructor_gets_its_collector(spout_collector: SpoutCollector, calls: Calls) -> None:
    """heronpy programs pass keyword arguments on."""

    class Own(Spout):
        def __init__(self, **kwargs: SpoutCollector) -> None:
            super().__init__(**kwargs)
            self.mine = 1

    Own(delegate=spout_collector).emit(["a"])
    assert len(calls) == 1


def test_a_component_without_a_collector_refuses_every_call() -> None:
    """A missing super().__init__ would otherwise be an AttributeError in the engine."""
    calls: list[Callable[[], object]] = [
        lambda: Spout().emit(["a"], tup_id=1),
        lambda: Spout().emit_watermark(1.5),
        lambda: Spout().end(),
        lambda: Bolt().emit(["a"], anchors=[Tuple()]),
        lambda: Bolt().ack(Tuple()),
        lambda: Bolt().fail(Tuple()),
    ]
    for call in calls:
        with pytest.raises(EmitError, match=r"has no collector; construct it with delegate=COLLECTOR"):
            call()


def test_log_writes_with_the_components_name_and_the_callers_line(caplog: pytest.LogCaptureFixture) -> None:
    """The author looks for the logging line, not for a line of the base class."""
    bolt = Bolt()
    with caplog.at_level(logging.DEBUG):
        bolt.log("100 % sure")
        bolt.log("look", level="warn")
        bolt.log("closer", level="trace")
    assert [(each.levelname, each.getMessage(), each.filename) for each in caplog.records] == [
        ("INFO", "100 % sure", "test_components.py"),
        ("WARNING", "look", "test_components.py"),
        ("DEBUG", "closer", "test_components.py"),
    ]
    assert caplog.records[0].name == "heron.api.bolt.Bolt"


def test_an_unknown_level_names_the_nearest() -> None:
    """The standard library names the level `warning`."""
    with pytest.raises(UsageError, match=r"unknown level 'warning' \(nearest: 'warn'\); known: 'debug'"):
        Bolt().log("x", level="warning")


def test_a_components_own_logger_may_replace_the_given_one() -> None:
    """heronpy programs assign self.logger."""
    bolt = Bolt()
    bolt.logger = logging.getLogger("mine")
    assert bolt.logger.name == "mine"

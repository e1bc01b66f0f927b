"""Wrong arguments and exceptions of every kind: the tuple fails with the author's line, and its neighbours arrive."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest

from heron.api import Bolt, Grouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron.errors import EmitError, TopologyFailedError
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock

NUMBERS = 8


class NumberSpout(Spout):
    """Emits numbers with lists as ids, and emits failed ones again."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.waiting = list(range(NUMBERS))
        self.acked: list[int] = []
        self.failed: list[int] = []

    def next_tuple(self) -> None:
        if self.waiting:
            number = self.waiting.pop(0)
            self.emit([number], tup_id=[number])
        else:
            self.end()

    def ack(self, tup_id: object) -> None:
        assert isinstance(tup_id, list)
        self.acked += tup_id

    def fail(self, tup_id: object) -> None:
        assert isinstance(tup_id, list)
        self.failed += tup_id
        self.waiting += tup_id


class SilentError(Exception):
    """Has no text."""

    def __str__(self) -> NoReturn:
        raise RuntimeError


def raise_silent() -> NoReturn:
    raise SilentError


WAYS: dict[str, tuple[Callable[[Any, Tuple], object], str]] = {
    "text": (lambda _bolt, _tup: raise_silent(), "raised SilentError: <no message: its __str__ raised RuntimeError>"),
    "ack None": (lambda bolt, _: bolt.ack(None), "ack of None, a NoneType; give what was received"),
    "ack list": (lambda bolt, tup: bolt.ack([tup]), "a list; give what was received"),
    "fail text": (lambda bolt, _: bolt.fail("x"), "fail of 'x', a str; give what was received"),
    "one anchor": (lambda bolt, tup: bolt.emit([1], anchors=tup), "is a tuple itself; give a list: anchors=[tup]"),
    "stream None": (lambda bolt, _: bolt.emit([1], stream=None), "emit to unknown stream, a NoneType"),
    "direct float": (lambda bolt, _: bolt.emit([1], "direct", None, 3.0), "direct_task is 3.0, a float"),
    "direct list": (lambda bolt, _: bolt.emit([1], "direct", None, [3]), "direct_task is [3], a list"),
    "no direct": (lambda bolt, _: bolt.emit([1], stream="direct"), "nobody receives this tuple"),
}


class MistakenBolt(Bolt):
    """Makes a mistake at the first arrival of number 3."""

    outputs = ("number", Stream(fields=["number"], name="direct"))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.way = config["way"]
        self.made = False

    def process(self, tup: Tuple) -> None:
        if tup.values[0] == 3 and not self.made:
            self.made = True
            self.act(tup)
        else:
            self.emit([tup.values[0]], anchors=[tup])
            self.ack(tup)

    def act(self, tup: Tuple) -> None:
        if self.way == "copy":
            self.ack(copy.copy(tup))
        elif self.way == "exit":
            sys.exit(3)
        else:
            WAYS[self.way][0](self, tup)


class LastBolt(Bolt):
    """Acks."""

    def process(self, tup: Tuple) -> None:
        self.ack(tup)


def run(way: str) -> NumberSpout:
    builder = TopologyBuilder("mistakes")
    builder.set_config({api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE", "way": way})
    spout = builder.add_spout("numbers", NumberSpout, par=1)
    mistaken = builder.add_bolt("mistaken", MistakenBolt, 1, {spout: Grouping.SHUFFLE})
    builder.add_bolt("last", LastBolt, 1, {mistaken: Grouping.SHUFFLE, mistaken["direct"]: Grouping.DIRECT})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        found = simulation.component("numbers")
        assert isinstance(found, NumberSpout)
        return found


@pytest.mark.parametrize("way", WAYS)
def test_a_mistake_fails_its_tuple_with_the_authors_line(capsys: pytest.CaptureFixture[str], way: str) -> None:
    """Nothing is silent, and no other tuple is lost."""
    source = run(way)
    assert source.failed == [3]
    assert sorted(source.acked) == list(range(NUMBERS))
    shown = capsys.readouterr().err
    assert "component 'mistaken', task 2: process with Tuple(component='numbers', " in shown
    assert WAYS[way][1] in shown
    assert f"at {__file__}, line " in shown


def test_the_ack_of_a_copy_is_named_and_has_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    """The tuple stays open until it times out, as on processes."""
    source = run("copy")
    assert source.failed == [3]
    assert f"at {__file__}, line {MistakenBolt.act.__code__.co_firstlineno + 2}; " in capsys.readouterr().err


def test_sys_exit_ends_the_simulation_with_the_line() -> None:
    """A process would be restarted; a simulation has none."""
    with pytest.raises(TopologyFailedError, match=r"process with .* raised SystemExit: 3; at .*; the simulation ends"):
        run("exit")


class Anchoring(LastBolt):
    """Emits in `finish` under the argument, and under a tuple that it received."""

    outputs = ("number",)

    def process(self, tup: Tuple) -> None:
        self.last = tup
        self.ack(tup)

    def finish(self) -> None:
        with pytest.raises(EmitError, match="anchors has a int; give what was received"):
            self.emit([1], anchors=[7])  # type: ignore[list-item]  # refused
        self.emit([2], anchors=[self.last])


class Texts(NumberSpout):
    """Emits a text of as many characters as the stream has fields."""

    def next_tuple(self) -> None:
        if self.waiting[:1] == [0]:
            with pytest.raises(EmitError, match=r"emit \[value\] for one field"):
                self.emit("x", tup_id=[0])
        super().next_tuple()


def test_anchors_of_finish_and_texts_of_a_replaying_spout_are_checked() -> None:
    """Both take another way through the collector than `process` does; the tasks on processes refuse both as well."""
    builder = TopologyBuilder("mistakes")
    builder.set_config(
        {api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE", api_constants.TOPOLOGY_REPLAY_ATTEMPTS: 1}
    )
    spout = builder.add_spout("numbers", Texts, par=1)
    anchoring = builder.add_bolt("anchoring", Anchoring, 1, {spout: Grouping.SHUFFLE})
    builder.add_bolt("last", LastBolt, 1, {anchoring: Grouping.SHUFFLE})
    with Simulation(builder, clock=FakeClock()) as simulation:
        simulation.run_until_finished(max_steps=100_000)
        assert simulation.counts()["last"].acked == 1

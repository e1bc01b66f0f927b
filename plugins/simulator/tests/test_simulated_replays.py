"""Failed roots that the engine emits again, and dead letters, as between processes."""

from __future__ import annotations

from typing import Any

import pytest

from heron.api import Bolt, DeadLetter, Grouping, Spout, TopologyBuilder, Tuple, api_constants
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock

NUMBERS = 20


class NumberSpout(Spout):
    """Emits numbers and ends; keeps nothing."""

    outputs = ("number", "text")

    def initialize(self, config: Any, context: Any) -> None:  # noqa: ANN401
        self.number = 0
        self.heard: list[tuple[str, Any]] = []

    def next_tuple(self) -> None:
        if self.number == NUMBERS:
            self.end()
            return
        values: Any = iter((self.number, str(self.number)))  # they can be read once
        self.emit(values, tup_id=self.number)
        self.number += 1

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401
        self.heard.append(("ack", tup_id))

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        self.heard.append(("fail", tup_id))


class CheckBolt(Bolt):
    """Raises for 3 always, fails 4 always, fails 5 once, and forgets 6."""

    def initialize(self, config: Any, context: Any) -> None:  # noqa: ANN401
        self.seen: list[int] = []

    def process(self, tup: Tuple) -> None:
        number = tup.values[0]
        self.seen.append(number)
        if number == 3:
            message = "poison"
            raise ValueError(message)
        if number == 4 or (number == 5 and self.seen.count(5) == 1):
            self.fail(tup)
        elif number != 6:
            self.ack(tup)


class LetterBolt(Bolt):
    """Fails the first letter once."""

    def initialize(self, config: Any, context: Any) -> None:  # noqa: ANN401
        self.letters: list[DeadLetter] = []
        self.failed = False

    def process(self, tup: Tuple) -> None:
        if not self.failed:
            self.failed = True
            self.fail(tup)
            return
        self.letters.append(DeadLetter.of(tup))
        self.ack(tup)


def topology(*, letters: bool) -> TopologyBuilder:
    builder = TopologyBuilder("poisoned")
    builder.set_config(
        {
            api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
            api_constants.TOPOLOGY_REPLAY_ATTEMPTS: 2,
            api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 5.0,
        }
    )
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    builder.add_bolt("check", CheckBolt, par=1, inputs={numbers: Grouping.SHUFFLE})
    if letters:
        builder.add_bolt("letters", LetterBolt, par=1, inputs=[numbers["dead_letters"]])
    return builder


def shown(letters: list[DeadLetter]) -> list[tuple[Any, ...]]:
    return sorted(
        (each.tup_id, each.values, each.failures, each.outcome, each.component, each.error) for each in letters
    )


EXPECTED = [
    (3, [3, "3"], 3, "failed", "check", "ValueError: poison"),
    (4, [4, "4"], 3, "failed", "check", ""),
    (6, [6, "6"], 3, "expired", "", ""),
]


@pytest.mark.parametrize("letters", [False, True])
def test_what_always_fails_becomes_a_dead_letter(letters: bool) -> None:
    """Time moves by itself: waits before replays, and the timeout of the number that is forgotten."""
    with Simulation(topology(letters=letters), clock=FakeClock()) as simulation:
        simulation.run_until_finished()
        spout, check = simulation.component("numbers"), simulation.component("check")
        assert isinstance(spout, NumberSpout)
        assert isinstance(check, CheckBolt)
        assert sorted(spout.heard) == sorted(
            ("fail" if number in (3, 4, 6) else "ack", number) for number in range(NUMBERS)
        )
        assert {number: check.seen.count(number) for number in range(3, 8)} == {3: 3, 4: 3, 5: 2, 6: 3, 7: 1}
        if letters:
            receiver = simulation.component("letters")
            assert isinstance(receiver, LetterBolt)
            assert shown(receiver.letters) == EXPECTED
            assert simulation.dead_letters("numbers") == ()
        else:
            assert shown(list(simulation.dead_letters("numbers"))) == EXPECTED

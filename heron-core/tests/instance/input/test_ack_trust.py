"""When the acks of a bolt are checked at their call."""

from __future__ import annotations

from heron.errors import UsageError
from heron.instance.input.ack_trust import AckTrust


class Runner:
    """Records the calls."""

    def __init__(self) -> None:
        self.trust = AckTrust(self.specialise, self.report)
        self.specialised: list[bool] = []
        self.reported: list[UsageError] = []

    def specialise(self) -> None:
        self.specialised.append(self.trust.trusts)

    def report(self, doing: str, error: UsageError, remedy: str) -> None:
        self.reported.append(error)


def test_acks_are_trusted_after_some_good_ones() -> None:
    """The methods of the component are replaced once."""
    runner = Runner()
    for settled in (0, 10, 63):
        runner.trust.note(settled)
    assert not runner.trust.trusts
    for settled in (64, 65, 10_000):
        runner.trust.note(settled)
    assert runner.specialised == [True]


def test_after_a_wrong_ack_all_are_checked() -> None:
    """So that the next one has the author's line; each is reported."""
    runner = Runner()
    runner.trust.note(100)
    errors = [UsageError("a"), UsageError("b")]
    for error in errors:
        runner.trust.wrong(error)
        runner.trust.note(1000)
    assert runner.specialised == [True, False]
    assert runner.reported == errors

"""An update waits until all rounds of a while want the same, so a change of the load makes one step of several."""

from __future__ import annotations

from heron.spi.health_values import Action, ActionKind, Diagnosis, Measurements, Subject, TopologyShape
from heron_health_manager.diagnosing.policy_round import Finding, Round
from heron_health_manager.managing.agreement import Agreement

STUCK = Finding(
    Diagnosis("stuck-task", Subject("count", 3), 0.9, ("it executes nothing",)), Action(ActionKind.RESTART, "restart")
)
UNKNOWN = Finding(Diagnosis("garbage", Subject("count", 3), 0.9, ("it collects",)), None)


def wanting(**parallelism: int) -> Round:
    """A round with one update, unless it is empty, and two other findings."""
    action = Action(ActionKind.UPDATE, str(parallelism), parallelism=parallelism)
    finding = Finding(Diagnosis("under-provisioned", Subject("split"), 0.8, ("it is full",)), action)
    return Round(Measurements(TopologyShape("t", ())), (), (*([finding] if parallelism else []), STUCK, UNKNOWN), ())


def passes(agreement: Agreement, found: Round, now_s: float) -> bool:
    """Whether the update passes; the other findings always do."""
    kept = agreement.filtered(found, now_s).findings
    assert kept[-2:] == (STUCK, UNKNOWN)
    return len(kept) > 2


def test_the_rounds_of_a_third_of_the_window_decide() -> None:
    """A window that has rates from before and after the change wants less than it will, also twice the same."""
    agreement = Agreement(look_back_s=18.0)
    sizes = [2, 2, 3, 3, 6, 6, 6, 6]
    decided = [passes(agreement, wanting(split=size), 3.0 * at) for at, size in enumerate(sizes)]
    assert decided == [*[False] * 6, *[True] * 2]


def test_it_waits_no_longer_than_a_window() -> None:
    """A source whose rate is never the same is sized all the same."""
    agreement = Agreement(look_back_s=6.0)
    assert [passes(agreement, wanting(split=3 + at % 2), 2.0 * at) for at in range(5)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_it_waits_again_after_rounds_that_agreed() -> None:
    """An update that is only advised, because its cause is in doubt, is wanted all day. The next one waits as ever."""
    agreement = Agreement(look_back_s=6.0)
    assert [passes(agreement, wanting(split=2), at_s) for at_s in (0.0, 2.0, 4.0, 6.0, 8.0)] == [False, *[True] * 4]
    assert not passes(agreement, wanting(split=5), 10.0)
    assert passes(agreement, wanting(split=5), 12.0)


def test_a_round_without_an_update_begins_again() -> None:
    """What was wanted long ago says nothing about now."""
    agreement = Agreement(look_back_s=6.0)
    assert not passes(agreement, wanting(split=2), 0.0)
    assert not passes(agreement, wanting(), 2.0)
    assert not passes(agreement, wanting(split=2), 100.0)
    assert not passes(agreement, wanting(split=2), 101.0)
    assert passes(agreement, wanting(split=2), 102.0)

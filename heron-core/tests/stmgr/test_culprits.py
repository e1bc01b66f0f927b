"""Who causes back pressure, since when, for how long."""

from __future__ import annotations

from heron.stmgr.back_pressure import Culprits, PressureChanged


def test_changes_name_who_came_and_who_went() -> None:
    """Each change is reported once, with its duration when it is over."""
    culprits = Culprits()
    assert culprits.update(frozenset({2, 1}), 10.0) == (PressureChanged(1, True), PressureChanged(2, True))
    assert culprits.update(frozenset({1, 2}), 11.0) == ()
    assert culprits.update(frozenset({2, 3}), 14.0) == (PressureChanged(3, True), PressureChanged(1, False, 4.0))
    assert culprits.present() == {2, 3}


def test_totals_add_up_and_go_on_while_it_lasts() -> None:
    """The metric is a counter of seconds, so it must never fall."""
    culprits = Culprits()
    culprits.update(frozenset({1}), 0.0)
    culprits.update(frozenset(), 2.0)
    culprits.update(frozenset({1}), 5.0)
    assert culprits.totals_s(6.5) == {1: 3.5}
    culprits.update(frozenset(), 7.0)
    assert culprits.totals_s(100.0) == {1: 4.0}

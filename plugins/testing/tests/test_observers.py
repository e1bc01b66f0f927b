"""A test announces an event to an observer as a run does, and sees its exceptions."""

from __future__ import annotations

import pytest

from heron.errors import PluginError
from heron_testing.observers import announce


class Versions:
    """Keeps the versions of the physical plan."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def heron_plan_changed(self, version: int) -> None:
        self.seen.append(version)


class Failing:
    """Raises for each plan."""

    def heron_plan_changed(self) -> None:
        msg = "no route to the pager"
        raise OSError(msg)


class Misspelt:
    """Has a method that is not a hook."""

    def heron_plan_change(self) -> None: ...


def test_method_receives_the_facts_that_it_takes() -> None:
    """A method names only the facts that it needs."""
    observer = Versions()
    announce(observer, "heron_plan_changed", topology="words", version=3)
    assert observer.seen == [3]


def test_exception_of_the_observer_reaches_the_test() -> None:
    """A run logs the exception and goes on; a test must fail."""
    with pytest.raises(OSError, match="no route to the pager"):
        announce(Failing(), "heron_plan_changed", topology="words", version=3)


def test_misspelt_hook_is_refused_as_in_a_run() -> None:
    """Otherwise the test passes and the run refuses the observer."""
    with pytest.raises(PluginError, match=r"observer 'Misspelt': 'heron_plan_change' is not a hook"):
        announce(Misspelt, "heron_plan_changed", topology="words", version=3)


def test_event_that_the_observer_does_not_follow_is_refused() -> None:
    """Otherwise a test announces to no method and shows nothing."""
    with pytest.raises(PluginError, match=r"no method 'heron_process_died'; its methods: 'heron_plan_changed'"):
        announce(Versions, "heron_process_died", topology="words", container_id=1, process="stmgr", reason="exit 1")


def test_missing_fact_is_refused() -> None:
    """A real event always has all facts of its hook."""
    with pytest.raises(TypeError, match="heron_plan_changed takes"):
        announce(Versions, "heron_plan_changed", version=3)

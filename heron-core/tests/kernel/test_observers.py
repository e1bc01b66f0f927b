"""Observers: each gets its events, and none of them affects the others."""

from __future__ import annotations

import logging
from inspect import signature
from typing import TYPE_CHECKING

import pytest

from heron.errors import PluginError
from heron.kernel.observers import Observers
from heron.spi.hooks import HOOK_NAMES, HookSpecs

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install


class Recorder:
    """Follows two events. For one of them it takes only some of the facts."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def heron_plan_changed(self, topology: str, version: int) -> None:
        self.seen.append((topology, version))

    def heron_topology_ended(self, state: str) -> None:
        self.seen.append(state)


class Raiser:
    """Raises in its hook."""

    def heron_plan_changed(self) -> None:
        msg = "broken observer"
        raise RuntimeError(msg)


def test_each_observer_gets_the_event_if_another_raises(caplog: pytest.LogCaptureFixture) -> None:
    """pluggy alone would stop at the first exception. The log names the broken observer."""
    before, after = Recorder(), Recorder()
    observers = Observers()
    for name, each in (("before", before), ("broken", Raiser()), ("after", after)):
        observers.add(name, each)
    observers.notify("heron_plan_changed", topology="words", version=2)
    assert before.seen == after.seen == [("words", 2)]
    assert "observer broken failed in heron_plan_changed: RuntimeError: broken observer" in caplog.text


def test_failing_observer_is_one_line_for_a_command(caplog: pytest.LogCaptureFixture) -> None:
    """Commands print warnings and errors. The traceback has level INFO, so it appears only in logs."""
    observers = Observers()
    observers.add("broken", Raiser())
    with caplog.at_level(logging.INFO):
        observers.notify("heron_plan_changed", topology="words", version=2)
    printed, logged = caplog.records
    assert (printed.levelno, printed.exc_info) == (logging.ERROR, None)
    assert (logged.levelno, bool(logged.exc_info)) == (logging.INFO, True)


def test_observer_gets_only_the_facts_that_it_names() -> None:
    """Older observers continue to work when a hook gets more facts."""
    recorder = Recorder()
    observers = Observers()
    observers.add("one", recorder)
    observers.notify("heron_topology_ended", topology="words", topology_id="words-1", state="finished")
    assert recorder.seen == ["finished"]


def test_entry_can_be_a_class(install: Install) -> None:
    """The class is instantiated without arguments."""
    module = install(
        "obs-a",
        "heron.hooks",
        "a",
        "class It:\n    def heron_plan_changed(self, version): seen.append(version)\nseen = []",
    )
    observers = Observers.load([f"{module}:It"])
    observers.notify("heron_plan_changed", topology="words", version=3)
    assert __import__(module).seen == [3]


class Misspelt:
    """Has a method for a hook that does not exist."""

    def heron_plan_chanced(self, topology: str) -> None: ...


class Greedy:
    """Takes a fact that the hook does not have."""

    def heron_plan_changed(self, topology: str, colour: str) -> None: ...


def test_misspelt_hook_is_refused_with_the_nearest() -> None:
    """Otherwise the method would never be called, without any message."""
    observers = Observers()
    with pytest.raises(PluginError, match=r"'heron_plan_chanced' is not a hook \(nearest: 'heron_plan_changed'\)"):
        observers.add("x", Misspelt())
    assert observers.names() == ()


def test_unknown_fact_is_refused() -> None:
    """No event could provide it."""
    observers = Observers()
    with pytest.raises(PluginError, match="colour"):
        observers.add("x", Greedy())
    assert observers.names() == ()


class Refusing:
    """Raises in its constructor."""

    def __init__(self) -> None:
        msg = "no configuration"
        raise OSError(msg)


class Quitting:
    """Exits in its constructor."""

    def __init__(self) -> None:
        raise SystemExit(3)

    def heron_plan_changed(self) -> None: ...


@pytest.mark.parametrize("observer", [Refusing, Quitting])
def test_observer_that_cannot_be_constructed_is_refused(observer: type) -> None:
    """No exception of a constructor may end the process."""
    observers = Observers()
    with pytest.raises(PluginError, match="observer 'x' cannot be constructed"):
        observers.add("x", observer)
    assert observers.names() == ()


def test_observer_that_exits_in_a_call_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An observer must not end the process."""

    class Exits:
        def heron_plan_changed(self) -> None:
            raise SystemExit(3)

    recorder = Recorder()
    observers = Observers()
    observers.add("exits", Exits())
    observers.add("after", recorder)
    observers.notify("heron_plan_changed", topology="words", version=2)
    assert recorder.seen == [("words", 2)]
    assert "observer exits failed" in caplog.text


def test_followed_hooks() -> None:
    """`heron plugins list` shows the hooks that an observer implements."""
    observers = Observers()
    observers.add("one", Recorder())
    assert observers.followed() == ("heron_plan_changed", "heron_topology_ended")


def test_observer_that_does_not_load_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A broken observer does not stop a run."""
    with caplog.at_level(logging.ERROR):
        observers = Observers.load(["no_such_module_at_all:It"])
    assert observers.names() == ()
    assert "no_such_module_at_all" in caplog.text


def test_wrong_facts_are_refused() -> None:
    """The engine must provide the facts that the specification lists; otherwise observers would fail."""
    with pytest.raises(TypeError, match="heron_plan_changed takes"):
        Observers().notify("heron_plan_changed", topology="words")


def test_every_hook_is_specified() -> None:
    """The manager finds hooks by name. It must find each specification."""
    observers = Observers()
    assert all(observers.reactions(name, _facts(name)) == () for name in HOOK_NAMES)


def _facts(name: str) -> dict[str, object]:
    return dict.fromkeys(list(signature(getattr(HookSpecs, name)).parameters)[1:])

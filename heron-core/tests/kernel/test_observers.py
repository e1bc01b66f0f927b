"""Observers: who is told what, and that none of them disturbs the others."""

from __future__ import annotations

import logging
from inspect import signature
from typing import TYPE_CHECKING

import pytest

from heron.errors import PluginError
from heron.kernel.observers import GROUP, Observers, installed_observers
from heron.spi.hooks import HOOK_NAMES, HookSpecs

if TYPE_CHECKING:
    from builders.distributions import Install


class Recorder:
    """Takes two events, one of them with only part of its facts."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def heron_plan_changed(self, topology: str, version: int) -> None:
        self.seen.append((topology, version))

    def heron_topology_ended(self, state: str) -> None:
        self.seen.append(state)


class Raiser:
    """Fails in what it is told."""

    def heron_plan_changed(self) -> None:
        msg = "broken observer"
        raise RuntimeError(msg)


def test_each_observer_is_told_although_another_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    """pluggy alone would stop at the first that raises; which one is broken must be in the log."""
    before, after = Recorder(), Recorder()
    observers = Observers()
    for name, each in (("before", before), ("broken", Raiser()), ("after", after)):
        observers.add(name, each)
    observers.notify("heron_plan_changed", topology="words", version=2)
    assert before.seen == after.seen == [("words", 2)]
    assert "observer broken failed in heron_plan_changed: RuntimeError: broken observer" in caplog.text


def test_observer_that_fails_is_one_line_to_a_command(caplog: pytest.LogCaptureFixture) -> None:
    """Commands print warnings and errors; where it failed is for the log of a process that has one."""
    observers = Observers()
    observers.add("broken", Raiser())
    with caplog.at_level(logging.INFO):
        observers.notify("heron_plan_changed", topology="words", version=2)
    printed, logged = caplog.records
    assert (printed.levelno, printed.exc_info) == (logging.ERROR, None)
    assert (logged.levelno, bool(logged.exc_info)) == (logging.INFO, True)


def test_observer_takes_only_the_facts_it_names() -> None:
    """A hook may get further facts later, and observers written before must go on."""
    recorder = Recorder()
    observers = Observers()
    observers.add("one", recorder)
    observers.notify("heron_topology_ended", topology="words", topology_id="words-1", state="finished")
    assert recorder.seen == ["finished"]


def test_class_is_constructed_and_module_taken_as_it_is(install: Install) -> None:
    """Both are natural things to register."""
    module = install(
        "obs-a", GROUP, "a", "class It:\n    def heron_plan_changed(self, version): seen.append(version)\nseen = []"
    )
    observers = Observers.load([f"{module}:It"])
    observers.notify("heron_plan_changed", topology="words", version=3)
    assert __import__(module).seen == [3]


class Misspelt:
    """A hook that does not exist."""

    def heron_plan_chanced(self, topology: str) -> None: ...


class Greedy:
    """A fact that the hook does not have."""

    def heron_plan_changed(self, topology: str, colour: str) -> None: ...


def test_misspelt_hook_is_refused_with_the_nearest() -> None:
    """It would never be called, and nobody would know why."""
    observers = Observers()
    with pytest.raises(PluginError, match=r"'heron_plan_chanced' is no hook \(nearest: 'heron_plan_changed'\)"):
        observers.add("x", Misspelt())
    assert observers.names() == ()


def test_unknown_fact_is_refused() -> None:
    """It could never be given."""
    observers = Observers()
    with pytest.raises(PluginError, match="colour"):
        observers.add("x", Greedy())
    assert observers.names() == ()


class Refusing:
    """Cannot be made."""

    def __init__(self) -> None:
        msg = "no configuration"
        raise OSError(msg)


class Quitting:
    """Would end its process."""

    def __init__(self) -> None:
        raise SystemExit(3)

    def heron_plan_changed(self) -> None: ...


@pytest.mark.parametrize("observer", [Refusing, Quitting])
def test_observer_that_cannot_be_constructed_is_refused(observer: type) -> None:
    """Whatever its constructor raises must not end the process that wanted to tell it something."""
    observers = Observers()
    with pytest.raises(PluginError, match="observer 'x' cannot be constructed"):
        observers.add("x", observer)
    assert observers.names() == ()


def test_observer_that_exits_in_a_call_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Observers never change what happens."""

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


def test_followed_hooks_are_known() -> None:
    """`heron plugins list` shows what an observer listens to."""
    observers = Observers()
    observers.add("one", Recorder())
    assert observers.followed() == ("heron_plan_changed", "heron_topology_ended")


def test_observer_that_does_not_load_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Observers never change what happens, so a broken one does not stop a run either."""
    with caplog.at_level(logging.ERROR):
        observers = Observers.load(["no_such_module_at_all:It"])
    assert observers.names() == ()
    assert "no_such_module_at_all" in caplog.text


def test_wrong_facts_are_our_own_mistake() -> None:
    """The caller in the engine must give what the specification lists, or observers would fail instead."""
    with pytest.raises(TypeError, match="heron_plan_changed takes"):
        Observers().notify("heron_plan_changed", topology="words")


def test_installed_observers_are_found(install: Install) -> None:
    """The command finds them and hands their entries to the other processes."""
    module = install("obs-a", GROUP, "a", "class It: ...")
    assert installed_observers() == (f"{module}:It",)


def test_every_hook_is_specified() -> None:
    """The manager knows hooks by name; a specification it does not see could not be implemented."""
    observers = Observers()
    assert all(observers.reactions(name, _facts(name)) == () for name in HOOK_NAMES)


def _facts(name: str) -> dict[str, object]:
    return dict.fromkeys(list(signature(getattr(HookSpecs, name)).parameters)[1:])

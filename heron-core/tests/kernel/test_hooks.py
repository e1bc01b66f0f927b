"""Observers in role processes: a thread each, a time limit, and no waiting."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, ClassVar

import pytest

from heron.kernel.hooks import ThreadedHooks

if TYPE_CHECKING:
    from builders.distributions import Install
    from heron_testing.pytest_plugin import Eventually

LIMIT_S = 2.0  # also for the observer that works, on a busy machine


class Recorder:
    """Notes what it is told, and in which thread."""

    seen: ClassVar[list[tuple[int, str]]] = []

    def heron_plan_changed(self, version: int) -> None:
        self.seen.append((version, threading.current_thread().name))


class Hanging:
    """Waits in its first call until the test lets it go."""

    gate: ClassVar[threading.Event] = threading.Event()
    calls: ClassVar[list[int]] = []

    def heron_plan_changed(self, version: int) -> None:
        self.calls.append(version)
        self.gate.wait(30)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "hooks_under_test", sys.modules[__name__])
    Recorder.seen.clear()
    Hanging.calls.clear()
    Hanging.gate.clear()
    return "hooks_under_test"


@pytest.mark.leaks_nothing
def test_observer_is_told_in_its_own_thread_in_order(here: str) -> None:
    """The engine's threads never run somebody else's code."""
    hooks = ThreadedHooks([f"{here}:Recorder"])
    for version in (1, 2, 3):
        hooks.notify("heron_plan_changed", topology="words", version=version)
    hooks.close(10)
    assert Recorder.seen == [(version, f"observer-{here}:Recorder") for version in (1, 2, 3)]


def test_slow_observer_is_abandoned_and_named(
    here: str, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not called again, delays nobody, and the log says who it was."""
    hooks = ThreadedHooks([f"{here}:Hanging", f"{here}:Recorder"], limit_s=LIMIT_S)
    hooks.notify("heron_plan_changed", topology="words", version=1)
    eventually(
        lambda: "Hanging took longer than 2 s in heron_plan_changed" in caplog.text, what="the log names the observer"
    )
    Hanging.gate.set()
    hooks.notify("heron_plan_changed", topology="words", version=2)
    hooks.close(10)
    assert Hanging.calls == [1]
    assert [version for version, _ in Recorder.seen] == [1, 2]


def test_close_does_not_wait_for_a_hanging_observer(here: str) -> None:
    """A role must end within its time whatever observers do."""
    hooks = ThreadedHooks([f"{here}:Hanging"])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(0.01)
    Hanging.gate.set()


def test_slow_load_delays_nobody_and_is_given_up(
    install: Install, here: str, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    """An import that hangs must not keep an executor from starting its container."""
    source = "import threading\ngate = threading.Event()\ngate.wait(30)\nclass It: ...\n"
    module = install("obs-slow", "heron.hooks", "slow", source)
    hooks = ThreadedHooks([f"{module}:It", f"{here}:Recorder"], limit_s=LIMIT_S)
    hooks.notify("heron_plan_changed", topology="words", version=1)
    eventually(lambda: f"{module}:It took longer than 2 s in its load" in caplog.text, what="the log names it")
    hooks.close(10)
    assert [version for version, _ in Recorder.seen] == [1]
    sys.modules[module].gate.set()


@pytest.mark.leaks_nothing
def test_observer_that_does_not_load_is_logged_and_nothing_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    """One broken plugin is named in the log of each process, and costs nothing else."""
    hooks = ThreadedHooks(["no_such_module_at_all:It"])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(10)
    assert "no_such_module_at_all" in caplog.text


def test_facts_that_are_not_the_specifications_are_our_own_mistake() -> None:
    """Also where nobody observes: else the mistake would wait for the first one who has an observer."""
    with pytest.raises(TypeError, match="heron_plan_changed takes"):
        ThreadedHooks([]).notify("heron_plan_changed", topology="words")


@pytest.mark.leaks_nothing
def test_without_observers_nothing_happens() -> None:
    """The usual case costs neither a thread nor an import."""
    hooks = ThreadedHooks([])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(1)

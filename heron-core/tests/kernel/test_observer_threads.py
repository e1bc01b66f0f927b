"""Observers in role processes: each has a thread and a time limit, and the process never waits for them."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, ClassVar

import pytest

from heron.kernel.observer_threads import ThreadedHooks

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install
    from heron_testing.waiting import Eventually

LIMIT_S = 2.0  # also for the observer that works, on a busy machine


class Recorder:
    """Records the events and the thread."""

    seen: ClassVar[list[tuple[int, str]]] = []

    def heron_plan_changed(self, version: int) -> None:
        self.seen.append((version, threading.current_thread().name))


class Hanging:
    """Waits in its first call until the test sets the gate."""

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
def test_observer_gets_events_in_order_in_its_own_thread(here: str) -> None:
    """The threads of the engine never run the code of observers."""
    hooks = ThreadedHooks([f"{here}:Recorder"])
    for version in (1, 2, 3):
        hooks.notify("heron_plan_changed", topology="words", version=version)
    hooks.close(10)
    assert Recorder.seen == [(version, f"observer-{here}:Recorder") for version in (1, 2, 3)]


def test_slow_observer_is_abandoned_and_named(
    here: str, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not called again and does not delay the other observers; the log names it."""
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
    """A role process must end in time even if an observer hangs."""
    hooks = ThreadedHooks([f"{here}:Hanging"])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(0.01)
    Hanging.gate.set()


def test_observer_that_loads_slowly_is_abandoned_without_delay(
    install: Install, here: str, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    """An import that hangs must not prevent an executor from starting its container."""
    source = "import threading\ngate = threading.Event()\ngate.wait(30)\nclass It: ...\n"
    module = install("obs-slow", "heron.hooks", "slow", source)
    hooks = ThreadedHooks([f"{module}:It", f"{here}:Recorder"], limit_s=LIMIT_S)
    hooks.notify("heron_plan_changed", topology="words", version=1)
    eventually(lambda: f"{module}:It took longer than 2 s in its load" in caplog.text, what="the log names it")
    hooks.close(10)
    assert [version for version, _ in Recorder.seen] == [1]
    sys.modules[module].gate.set()


@pytest.mark.leaks_nothing
def test_observer_that_does_not_load_is_logged_without_delay(caplog: pytest.LogCaptureFixture) -> None:
    """A broken plugin costs only a line in the log of each process."""
    hooks = ThreadedHooks(["no_such_module_at_all:It"])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(10)
    assert "no_such_module_at_all" in caplog.text


def test_wrong_facts_are_refused_without_observers() -> None:
    """Otherwise a mistake in the engine would show only where an observer is installed."""
    with pytest.raises(TypeError, match="heron_plan_changed takes"):
        ThreadedHooks([]).notify("heron_plan_changed", topology="words")


@pytest.mark.leaks_nothing
def test_events_without_observers_are_dropped() -> None:
    """The usual case needs no thread and no import."""
    hooks = ThreadedHooks([])
    hooks.notify("heron_plan_changed", topology="words", version=1)
    hooks.close(1)

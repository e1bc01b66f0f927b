"""The catalog of installed observers, and the names that switch them off."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING

import pytest

from heron.errors import PluginError
from heron_cli.catalog.other_plugins import check_without, observer_catalog

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install


def test_catalog_names_observers_that_do_not_work(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt hook, an import that fails, and an import that hangs are shown; the others work."""
    monkeypatch.setattr("heron_cli.catalog.other_plugins.IMPORT_LIMIT_S", 2.0)  # enough for the other observers
    hook = "class It:\n    def {}(self): ...\n"
    install("obs-a", "heron.hooks", "a", hook.format("heron_plan_changed"))
    install("obs-b", "heron.hooks", "b", hook.format("heron_plan_chanced"))
    install("obs-c", "heron.hooks", "c", "import no_such_module_at_all")
    hanging = install("obs-d", "heron.hooks", "d", "import threading\ngate = threading.Event()\ngate.wait(30)\n")
    found = {each.name: each for each in observer_catalog()}
    sys.modules[hanging].gate.set()
    assert (found["a"].family, found["a"].capabilities, found["a"].error) == ("hooks", ("heron_plan_changed",), "")
    assert "nearest: 'heron_plan_changed'" in found["b"].error
    assert "no_such_module_at_all" in found["c"].error
    assert "not done after 2 s" in found["d"].error


def test_names_to_switch_off_cost_at_most_one_look_at_the_distributions(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command checks them, and a large environment has hundreds of distributions."""
    install("obs-a", "heron.hooks", "a", "class It:\n    def heron_plan_changed(self): ...\n")
    looks: list[object] = []
    look = importlib.metadata.entry_points

    def counted() -> object:
        looks.append(None)
        return look()

    monkeypatch.setattr("importlib.metadata.entry_points", counted)
    check_without(())
    assert not looks
    check_without(("a", "hooks.a"))
    assert len(looks) == 1
    with pytest.raises(
        PluginError, match=r"--without hooks\.b: no plugin of that name is installed \(nearest: 'hooks\.a'\)"
    ):
        check_without(("hooks.b",))

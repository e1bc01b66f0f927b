"""The catalog of installed observers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from heron_cli.catalog.other_plugins import observer_catalog

if TYPE_CHECKING:
    from builders.distributions import Install


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

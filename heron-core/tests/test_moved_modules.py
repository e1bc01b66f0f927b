"""Former paths of modules that have left the core, where their distribution is not installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pytest

from heron.moved_modules import MOVED


class NotInstalled(MetaPathFinder):
    """Finds nothing of a package, in place of the finders of the environment."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if fullname == self._package:
            msg = f"No module named {fullname!r}"
            raise ModuleNotFoundError(msg, name=fullname)


@pytest.mark.parametrize(("former", "present"), MOVED.items())
def test_a_former_path_names_the_command_that_installs_its_kit(
    former: str, present: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that was written before depends on heron-core alone, and the kit is often missing."""
    kit = present.partition(".")[0]
    for name in [each for each in sys.modules if each == former or each.partition(".")[0] == kit]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(kit), *sys.meta_path])
    with pytest.warns(DeprecationWarning, match="has moved to"), pytest.raises(ImportError) as raised:
        importlib.import_module(former)
    remedy = f"pip install {kit.replace('_', '-')}"
    assert str(raised.value) == f"{former} has moved to {present}, which is not installed; run: {remedy}"


def test_another_path_does_not_import() -> None:
    """A misspelt name must not become an empty module."""
    assert importlib.util.find_spec("heron.planner.capacities") is None

"""The former paths of modules that moved into rooms: each imports, and says where to import from."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest

import heron_streamlet.moved_modules
import heron_testing.moved_modules

MOVED = heron_streamlet.moved_modules.MOVED | heron_testing.moved_modules.MOVED


@pytest.mark.parametrize(("former", "present"), MOVED.items())
def test_a_former_path_has_the_names_of_the_present_one(
    former: str, present: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program for the former version runs, and reads which path it should import."""
    with warnings.catch_warnings(action="ignore"):  # a former package warns as well
        importlib.import_module(former.rpartition(".")[0])
    monkeypatch.delitem(sys.modules, former, raising=False)  # a path warns when it is imported first
    with pytest.warns(DeprecationWarning, match=f"^{former} has moved to {present}$"):
        found = importlib.import_module(former)
    names = vars(importlib.import_module(present))
    assert {name: vars(found)[name] for name in names["__all__"]} == {name: names[name] for name in names["__all__"]}


@pytest.mark.parametrize("package", ["heron_streamlet", "heron_testing.contracts"])
def test_a_present_path_does_not_warn(package: str) -> None:
    """Otherwise every user would have the warning."""
    assert not set(MOVED) & set(MOVED.values())
    with pytest.raises(ModuleNotFoundError, match=f"{package}.none"):
        importlib.import_module(f"{package}.none")

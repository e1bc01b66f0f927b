"""Former paths of modules: they import, name the present path, and have the same objects."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from heron.driver_kit.moved_modules import MovedModules


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose module `words` was `old` before. The path `broken` leads nowhere."""
    (tmp_path / "with_rooms").mkdir()
    (tmp_path / "with_rooms" / "__init__.py").write_text("")
    (tmp_path / "with_rooms" / "words.py").write_text("_LIMIT = 3\n\nclass Word:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    moved = {"with_rooms.old": "with_rooms.words", "with_rooms.broken": "with_rooms.gone"}
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, MovedModules(moved)])
    for name in ("with_rooms", "with_rooms.words", *moved):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("_package")
def test_a_former_path_has_the_objects_of_the_present_one() -> None:
    """A class that existed twice would fail isinstance, and a stored value could not be read."""
    with pytest.warns(DeprecationWarning, match=r"^with_rooms\.old has moved to with_rooms\.words$") as caught:
        former = importlib.import_module("with_rooms.old")
    present = importlib.import_module("with_rooms.words")
    assert vars(former)["Word"] is vars(present)["Word"]
    assert vars(former)["_LIMIT"] == 3
    assert former.__name__ == "with_rooms.old"
    assert len(caught) == 1


@pytest.mark.usefixtures("_package")
def test_other_paths_are_as_without_it() -> None:
    """A finder that answered for every path would hide mistakes."""
    importlib.import_module("with_rooms.words")
    with pytest.raises(ModuleNotFoundError, match=r"with_rooms\.none"):
        importlib.import_module("with_rooms.none")


@pytest.mark.usefixtures("_package")
def test_a_present_path_that_is_not_there_is_named() -> None:
    """A table with a mistake must not give a module without names."""
    with (
        pytest.warns(DeprecationWarning, match="has moved"),
        pytest.raises(ModuleNotFoundError, match=r"with_rooms\.gone"),
    ):
        importlib.import_module("with_rooms.broken")

"""Loads the examples as modules of this process, and restores the state of the process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"

LoadExample = Callable[[str], ModuleType]


@pytest.fixture
def unchanged_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restores `sys.argv`, `sys.path` and modules, which the load of an author's file changes."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield
    for name in set(sys.modules) - before:
        if (file := getattr(sys.modules[name], "__file__", None)) and not file.endswith("__init__.py"):
            path = Path(file)
            if path.parent == EXAMPLES or "pytest-" in file:
                del sys.modules[name]


@pytest.fixture
def load_example(unchanged_process: None) -> LoadExample:
    """Imports a file of the examples under its name."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load

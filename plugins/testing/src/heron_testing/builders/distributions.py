"""Makes distributions with one module and one entry point, for tests of the discovery of plugins."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

__all__ = ["Install", "install"]


class Install(Protocol):
    """Adds a distribution with one module and one entry point to `sys.path`."""

    def __call__(self, distribution: str, group: str, name: str, source: str, attribute: str = "It") -> str:
        """Return the name of the module."""
        ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that adds distributions; the fixture removes them and their modules after the test."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def put(distribution: str, group: str, name: str, source: str, attribute: str = "It") -> str:
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{attribute}\n")
        modules.append(module)
        importlib.invalidate_caches()
        return module

    yield put
    for module in modules:
        sys.modules.pop(module, None)

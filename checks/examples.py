"""A plugin of pytest: property tests of packages draw a quarter of their examples, so that the run ends soon.

Recorded suites draw all of them: those of the core on other interpreters, those of a plugin with its wheel alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import settings

__all__ = ["pytest_collection_modifyitems"]

_SETTINGS = "_hypothesis_internal_use_settings"  # of a test; Hypothesis has no public way to change them later
_PACKAGES = ("heron-core", "plugins")
_PART = 4
_LEAST = 5


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Change the number of examples of each property test once, whatever its parameters."""
    packages = [Path(config.rootpath, name) for name in _PACKAGES]
    own = [item for item in items if any(item.path.is_relative_to(each) for each in packages)]
    functions = (getattr(item, "obj", None) for item in own)
    for function in {getattr(each, "__func__", each) for each in functions}:
        if drawn := getattr(function, _SETTINGS, None):
            setattr(function, _SETTINGS, settings(drawn, max_examples=_part_of(drawn.max_examples)))


def _part_of(examples: int) -> int:
    return max(examples // _PART, min(examples, _LEAST))

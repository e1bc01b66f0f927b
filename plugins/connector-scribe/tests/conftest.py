"""Collectors of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collectors import Collector


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    """Starts a collector with these options, and ends it with the test."""
    made: list[Collector] = []

    def start(mode: str = "ATLEAST_ONCE", **options: object) -> Collector:
        made.append(Collector(tmp_path, mode, **options))
        return made[-1]

    yield start
    for each in made:
        each.close()

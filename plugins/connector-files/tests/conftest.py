"""The directory of logs of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rotated_logs import Logs


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    made = Logs(tmp_path)
    yield made
    made.close()

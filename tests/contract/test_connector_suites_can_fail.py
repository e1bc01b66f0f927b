"""The suite of sources fails if a source breaks its contract."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from file_feed import FileFeed
from heron_testing.contracts.source import SourceContract

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

pytestmark = pytest.mark.matrix

_PROGRAM = Path(__file__).parent / "programs" / "read_broken_files.py"


class Suite(SourceContract):
    """Of a source with a mistake."""

    program = _PROGRAM
    partitions = 4
    live = False
    within_s = 20.0
    tells_backlog = True


@pytest.fixture
def sandbox_programs() -> Path:
    """The folder of the program."""
    return _PROGRAM.parent


@pytest.mark.parametrize("mistake", ["forgetful", "lossy"])
def test_a_position_that_is_wrong_is_found(sandbox: Sandbox, tmp_path: Path, mistake: str) -> None:
    """Records would be there twice, or be lost."""
    feed = FileFeed(tmp_path)
    feed.given |= {"mistake": mistake}
    with pytest.raises(AssertionError):
        Suite().test_effectively_once_each_record_arrives_once_and_in_order_whatever_dies(sandbox, feed)


def test_a_backlog_that_is_declared_and_not_shown_is_found(sandbox: Sandbox, tmp_path: Path) -> None:
    """The health manager would wait for it."""
    feed = FileFeed(tmp_path)
    feed.given |= {"mistake": "forgetful"}
    with pytest.raises(AssertionError):
        Suite().test_the_backlog_is_shown_as_declared(sandbox, feed)

"""The example `hosts.py` builds, and refuses wrong limits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield __import__("hosts")
    sys.modules.pop("hosts", None)


def test_the_judge_is_one_task(example: ModuleType) -> None:
    """Several judges would do no harm, and no good either: each sees all reports."""
    definition = example.hosts(["--profile", "slurm", "--minutes", "5"]).build()
    assert {each.name: each.parallelism for each in definition.components} == {"reports": 1, "judge": 1}
    assert definition.config["profile"] == "slurm"
    assert definition.config["rules"]["block_s"] == 300.0


def test_limits_without_a_meaning_are_refused(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The command refuses before it starts a process."""
    with pytest.raises(SystemExit):
        example.hosts(["--share", "2"])
    assert "most_share is within 0 and 1" in capsys.readouterr().err

"""The example of Nexmark with real processes, on records and on columns."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexmark_recount import ANSWERS

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.mark.parametrize(("query", "more"), [("q8", ()), ("q5", ("--columns",))])
def test_a_query_prints_what_a_recount_gives(
    query: str, more: tuple[str, ...], sandbox: Sandbox, examples: Path
) -> None:
    """The files of the example import each other, and travel together."""
    folder = examples / "pipelines"
    sys.path.append(str(folder))
    try:
        events = [import_module("nexmark_events").event(number, 10_000) for number in range(3000)]
    finally:
        sys.path.remove(str(folder))
    arguments = (query, *more, "--events", "3000", "--per-s", "100", "--tasks", "2")
    run = sandbox.run(folder / "nexmark.py", args=arguments)
    assert run.process.returncode == 0, run.all_output
    expected = ANSWERS[query](events)
    printed = [words for line in run.stdout.splitlines() if (words := line.rsplit(" | ")[-1]).startswith("(")]
    assert sorted(printed) == sorted(map(str, expected))
    assert printed

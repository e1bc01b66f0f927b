"""Features for authors, with real processes: ticks, windows, streams, threads, `finish`, examples."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.sandbox import Sandbox

NUMBERS = 300


@pytest.mark.guarantee
def test_ticks_windows_streams_threads_and_finish_work_together(sandbox: Sandbox) -> None:
    """A spout whose own thread emits feeds two windows and a ticking bolt. The tuples of `finish` arrive.

    Guarantee: ticks, windows, streams, threads of authors and `finish` work together.
    """
    run = sandbox.start("features.py")
    run.finished()

    ((last_words),) = run.results("record").values()
    counts = {str(row[1]): row[3] for row in last_words}
    assert counts["default"] == NUMBERS
    assert float(str(counts["ticks"])) < 0.5, "five ticks, one every 0.1 s if the machine is fast enough"
    ((squares),) = run.results("squares").values()
    assert [row[3:] for row in squares] == [[number, number**2] for number in range(NUMBERS)]

    ((tumbling),) = run.results("tumbling").values()
    assert [number for _, window in tumbling for number in window] == list(range(NUMBERS))  # type: ignore[attr-defined]
    assert len(tumbling) > 2
    ((sliding),) = run.results("sliding").values()
    assert all(span == pytest.approx(0.5) for span, _ in sliding)
    seen = [number for _, window in sliding for number in window]  # type: ignore[attr-defined]
    assert set(seen) == set(range(NUMBERS))
    assert len(seen) > NUMBERS, "windows overlap"
    assert all(max(first, default=0) <= max(second, default=NUMBERS) for (_, first), (_, second) in pairwise(sliding))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("example", "args", "output"),
    [
        ("custom_grouping.py", (), ("words from 'a' verified", "inspected words verified")),
        ("multi_stream.py", (), ("booked verified", "refused orders verified", "all orders verified")),
        ("topology_class.py", (), ("total verified",)),
        ("trends.py", (), ("trends verified",)),
    ],
)
def test_every_example_finishes_with_its_own_check(
    sandbox: Sandbox, examples: Path, example: str, args: tuple[str, ...], output: tuple[str, ...]
) -> None:
    """Each example checks its own result."""
    run = sandbox.start(examples / example, args=args)
    run.finished()
    for text in output:
        assert text in run.stdout, run.all_output


def test_word_count_counts_a_text_and_writes_its_table(sandbox: Sandbox, examples: Path) -> None:
    """The table has one line per word, most frequent first: word, tab, count."""
    text, out = sandbox.root / "text.txt", sandbox.root / "counts.tsv"
    text.write_text("The cat saw the dog.\n\nThe dog saw the cat\tand ran\n" * 50, encoding="utf-8")
    run = sandbox.start(examples / "word_count.py", args=("--text", str(text), "--out", str(out), "--loops", "3"))
    run.finished()
    assert "counts verified: 1,800 words, 7 distinct" in run.stdout, run.all_output
    assert out.read_text(encoding="utf-8").split("\n") == [
        *("the\t600", "cat\t300", "saw\t300", "and\t150", "dog\t150", "dog.\t150", "ran\t150"),
        "",
    ]

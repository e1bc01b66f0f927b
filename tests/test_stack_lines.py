"""Which lines the collectors of examples/stack let into the topic."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.clock import wall_s

_LINES = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "stack" / "page_views.py"))
is_countable: Callable[[bytes], bool] = _LINES["is_countable"]


@pytest.mark.parametrize("ahead_s", [-86_400, 0, _LINES["LAG_S"] - 5])
def test_lines_with_a_likely_time_are_counted(ahead_s: float) -> None:
    """Old lines come from a program that could not reach a collector."""
    assert is_countable(_LINES["line"](wall_s() + ahead_s, "/cart").encode())


@pytest.mark.parametrize(
    "text", [b"abc /cart", b"/cart", b"1 2 3", b"\xff /cart", b"9e10 /cart", b"nan /cart", b"-1 /cart"]
)
def test_other_lines_are_refused(text: bytes) -> None:
    """A time in the future would make the lines of the present late, and the count would pass over them."""
    with pytest.raises(ValueError, match=r"no line of|could not convert|can't decode|is not from 0 to"):
        is_countable(text)

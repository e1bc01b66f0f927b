"""Decoders of bytes from other processes refuse changed bytes with errors of the tree, in bounded time and memory."""

from __future__ import annotations

import pytest
from decoders import all_decoders

from heron_testing.hostile_bytes import attack

DECODERS = {each.name: each for each in all_decoders()}
SHORT = 300
LONG = 1_000_000


@pytest.mark.parametrize("name", DECODERS)
def test_changed_bytes_are_refused_in_bounds(name: str) -> None:
    """Some hundred inputs for each decoder; `./dev soak` has a million."""
    report = attack(DECODERS[name], SHORT)
    assert report.refused

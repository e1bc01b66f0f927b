"""A bolt in a real child process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from doubling import CHILDREN, NUMBERS, doubling, kept, source

from heron.clock import SystemClock
from heron_simulator import Simulation


@pytest.mark.leaks_nothing
def test_a_child_gets_every_tuple_and_its_acks_reach_the_spout(tmp_path: Path) -> None:
    """The way of a tuple through a child, at least once: nothing is lost, doubled or left."""
    command = [sys.executable, str(CHILDREN / "hostile.py"), "log", str(tmp_path / "marker")]
    with Simulation(doubling("ATLEAST_ONCE", command=command), clock=SystemClock()) as simulation:
        simulation.run_until_finished()
        assert kept(simulation).rows == [(number, 2 * number) for number in range(NUMBERS)]
        assert source(simulation).acked == set(range(NUMBERS))

"""Random topologies give what they mean as processes, also while they are updated and paused."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron_testing.random_topologies import Choices, random_program
from heron_testing.random_topologies.processes import differences_of_processes
from heron_testing.random_topologies.program_file import program_text

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

PROGRAMS, PARTS = 100, 10
FOUND = (217, 357, 477, 556, 788)
"""Seeds that found faults which were put back (decision 057), beside those of the first hundred."""

SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))
RUN_S = 300.0


def check(sandbox: Sandbox, seed: int) -> None:
    """Run a program; those with odd seeds are changed while they run."""
    program = random_program(seed, Choices(most_tasks=2, most_bolts=2, updates=seed % 2 == 1))
    found = differences_of_processes(sandbox, program, timeout_s=RUN_S)
    if found:
        pytest.fail(program_text(program, found))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(1800)
def test_programs_give_what_they_mean(sandbox: Sandbox, part: int) -> None:
    """A tenth of the programs; a failure shows the file that fails."""
    for seed in range(part * PROGRAMS // PARTS, (part + 1) * PROGRAMS // PARTS):
        check(sandbox, seed)


@pytest.mark.parametrize("seed", FOUND)
def test_programs_that_found_faults_give_what_they_mean(sandbox: Sandbox, seed: int) -> None:
    """They find them again."""
    check(sandbox, seed)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 600)
def test_programs_give_what_they_mean_for_minutes(sandbox: Sandbox) -> None:
    """As many as the time allows."""
    end_s = monotonic_s() + SOAK_MINUTES * 60
    for seed in count(1_000_000):
        check(sandbox, seed)
        if monotonic_s() >= end_s:
            return

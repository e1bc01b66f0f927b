"""Runs a scenario in a fork of this process, so that a run does not depend on the runs before it.

The first run of a process imports modules and fills caches, which takes simulated time. So a fixed run comes first, and
every other run begins with the memory that it leaves.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import cast

from heron_testing.seeded.faults import Fault, FaultKind
from heron_testing.seeded.simulation import Outcome, Scenario, simulate

__all__ = ["run_forked", "warm_up"]


def warm_up() -> None:
    """Makes the fixed run in each mode; call it once, before the first fork."""
    for with_state in (False, True):
        simulate(
            Scenario(0, (Fault(0.5, FaultKind.UPDATE, "split 3"),), with_state=with_state, sentences=20, limit_s=5.0)
        )


def run_forked(scenario: Scenario, *, keeps_trace: bool = False) -> Outcome:
    """The outcome of a scenario.

    Raises:
        RuntimeError: when the process that runs it ends without one; its stderr has the reason.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            outcome = simulate(scenario, keeps_trace=keeps_trace)
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(outcome, pipe)
            code = 0
        except BaseException:  # the parent reports it
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        message = f"the run of seed {scenario.seed} has ended without an outcome"
        raise RuntimeError(message)
    return cast("Outcome", pickle.loads(data))

"""Random kills, several at once, for as long as `./dev soak` runs."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import TYPE_CHECKING

import psutil
import pytest

from heron.clock import monotonic_s

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

KILLING_S = 40.0
ROLES = ("instance", "instance", "stmgr", "stmgr", "metricsmgr", "tmanager", "executor")
# Otherwise the engine would rightly leave down processes that die this often.
PATIENT = ("--set", "heron.executor.stable.s=0", "--set", "scheduler.stable_s=0")


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(4))
def test_a_topology_survives_random_kills_and_ends(sandbox: Sandbox, seed: int) -> None:
    """Kills at any moment, also during restarts: in the end all tasks end, and nothing is left."""
    chance = random.Random(seed)
    run = sandbox.start("steady.py", *PATIENT)
    run.until((run.out / "progress").exists, "tuples")
    deadline_s = monotonic_s() + KILLING_S
    pause = threading.Event()
    killed: list[str] = []
    while monotonic_s() < deadline_s:
        for role in chance.sample(ROLES, chance.choice((1, 1, 2, 3))):
            killed += kill_one_of(run.processes(role), chance)
        pause.wait(chance.uniform(0.05, 2.0))
        assert run.process.poll() is None, f"{killed}\n{run.all_output}"
    (run.out / "stop").touch()
    try:
        run.finished(60.0)
    except AssertionError as error:
        raise AssertionError(f"killed: {killed}\n{error}") from None  # noqa: EM102


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(4))
def test_full_buffers_drain_when_their_receivers_die(sandbox: Sandbox, seed: int) -> None:
    """A link that ends while every buffer is full must not stop the rest."""
    chance = random.Random(seed)
    run = sandbox.start("counting.py", *PATIENT, args=("--words", "6000000"))
    run.until(lambda: len(run.processes("instance")) == 9, "all instances")
    pause = threading.Event()
    killed: list[str] = []
    deadline_s = monotonic_s() + KILLING_S
    while run.process.poll() is None and monotonic_s() < deadline_s:
        receivers = [*run.processes("instance", "/split-"), *run.processes("instance", "/count-")]
        killed += kill_one_of([*receivers, *run.processes("stmgr"), *run.processes("tmanager")], chance)
        pause.wait(chance.uniform(0.3, 1.5))
    try:
        run.finished(60.0)
    except AssertionError as error:
        raise AssertionError(f"killed: {killed}\n{error}") from None  # noqa: EM102


def kill_one_of(processes: list[psutil.Process], chance: random.Random) -> list[str]:
    """Kill one of the processes, if there are any, and return its name."""
    if processes:
        victim = chance.choice(processes)
        with contextlib.suppress(psutil.Error):
            name = "/".join(victim.cmdline()[-1].split("/")[-2:])
            victim.kill()
            return [name]
    return []

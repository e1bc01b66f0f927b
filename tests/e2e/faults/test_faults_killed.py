"""kill -9 of each process and container, of two processes, of new processes, and repeatedly: no line is lost."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pytest

from heron.clock import monotonic_s
from line_journal import PATIENT, Lines

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

Place = tuple[str, str]

SPLIT, JOURNAL, SPOUT = ("instance", "/split-"), ("instance", "/journal-"), ("instance", "/lines-")
STMGR_1, STMGR_2, TMANAGER = ("stmgr", "/c1/"), ("stmgr", "/c2/"), ("tmanager", "/c0/")
METRICSMGR_2 = ("metricsmgr", "/c2/")
CONTAINERS = tuple(("executor", f"{number}.json") for number in range(3))

PAIRS: tuple[tuple[Place, Place], ...] = (
    (STMGR_1, STMGR_2),  # all links at once, and every ledger
    (STMGR_1, TMANAGER),  # no process can make the plan that the new stream manager needs
    (SPOUT, STMGR_2),  # a ledger has roots of a spout that is gone
    (JOURNAL, CONTAINERS[0]),  # no process reports its end
    (CONTAINERS[1], CONTAINERS[2]),  # all processes on the path of tuples
)


def kill(run: HeronRun, *places: Place) -> list[int]:
    """kill -9 of the first process of each name at once; return their process ids."""
    victims = [run.processes(*place)[0] for place in places]
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    return [victim.pid for victim in victims]


def is_there(run: HeronRun, place: Place, former: int = 0) -> bool:
    """Return whether such a process exists, other than the former one."""
    return any(each.pid != former for each in run.processes(*place))


@pytest.mark.guarantee
def test_no_line_is_lost_when_a_process_or_a_container_dies(sandbox: Sandbox) -> None:
    """Each kind in turn, then each container, whose processes end and restart with it; no timeout replays a line.

    Guarantee: a process of any kind that dies is replaced, and at least once no line is lost.
    """
    lines = Lines(sandbox, *PATIENT)
    lines.flow("the start")
    for place in (SPOUT, SPLIT, JOURNAL, STMGR_1, STMGR_2, TMANAGER, METRICSMGR_2, *CONTAINERS):
        (pid,) = kill(lines.run, place)
        lines.run.until(partial(is_there, lines.run, place, pid), f"another {place}")
        lines.flow(f"kill -9 of {place}")
    lines.finish()


def test_no_line_is_lost_when_two_processes_die_at_once(sandbox: Sandbox) -> None:
    """Each pair of processes that depend on each other."""
    lines = Lines(sandbox)
    lines.flow("the start")
    for pair in PAIRS:
        kill(lines.run, *pair)
        lines.flow(f"kill -9 of {pair}")
    lines.finish()


def test_a_process_may_die_in_its_first_second(sandbox: Sandbox) -> None:
    """One process of each kind is killed as soon as it exists, and so is its successor."""
    lines = Lines(sandbox)
    run = lines.run
    for place in (CONTAINERS[1], TMANAGER, STMGR_2, SPLIT, METRICSMGR_2):
        run.until(partial(is_there, run, place), f"a {place}")
        (first,) = kill(run, place)
        run.until(partial(is_there, run, place, first), f"another {place}")
        kill(run, place)
    lines.flow("two deaths of each")
    lines.finish()


def killed_for(run: HeronRun, place: Place, duration_s: float, every_s: float) -> int:
    """Kill the process repeatedly; return the number of kills."""
    pause = threading.Event()
    killed = 0
    deadline_s = monotonic_s() + duration_s
    while monotonic_s() < deadline_s:
        for victim in run.processes(*place):
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
                killed += 1
        pause.wait(every_s)
    return killed


@pytest.mark.guarantee
def test_a_process_that_is_killed_repeatedly_comes_back(sandbox: Sandbox) -> None:
    """Ten kills a second for 4 s are above the restart limit; the process is back within one back-off.

    Guarantee: a process that is killed again and again comes back.
    """
    settings = ("heron.executor.restart.backoff.max.s=1", "heron.executor.restart.limit=2")
    lines = Lines(sandbox, *(word for each in settings for word in ("--set", each)))
    lines.flow("the start")
    assert killed_for(lines.run, STMGR_1, 4.0, 0.1) > 2
    lines.flow("the last death")
    lines.finish()


@pytest.mark.soak
@pytest.mark.parametrize("place", [SPLIT, STMGR_1, TMANAGER, CONTAINERS[1]])
def test_a_topology_survives_a_minute_of_kills(sandbox: Sandbox, place: Place) -> None:
    """One kill a second, with the default back-off and limit."""
    lines = Lines(sandbox)
    lines.flow("the start")
    assert killed_for(lines.run, place, 60.0, 1.0) > 8
    lines.flow("the last death")
    lines.finish()

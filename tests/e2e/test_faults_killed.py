"""kill -9 of whole containers, of two at once, of one in its first second, of one over and over: no line is lost (D10).

One process at a time is in ``test_at_least_once`` and ``test_killed_processes``.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pytest
from line_journal import Lines

from heron.clock import monotonic_s

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

Place = tuple[str, str]

SPLIT, JOURNAL, SPOUT = ("instance", "/split-"), ("instance", "/journal-"), ("instance", "/lines-")
STMGR_1, STMGR_2, TMANAGER = ("stmgr", "/c1/"), ("stmgr", "/c2/"), ("tmanager", "/c0/")
METRICSMGR_2 = ("metricsmgr", "/c2/")
CONTAINERS = tuple(("executor", f"{number}.json") for number in range(3))

PAIRS: tuple[tuple[Place, Place], ...] = (
    (STMGR_1, STMGR_2),  # all links at once, and every ledger
    (STMGR_1, TMANAGER),  # nobody makes the plan that the new one needs
    (SPOUT, STMGR_2),  # roots of a spout that is gone, in a ledger that is there
    (JOURNAL, CONTAINERS[0]),  # nobody hears of its end
    (CONTAINERS[1], CONTAINERS[2]),  # everything that carries data
)


def kill(run: HeronRun, *places: Place) -> list[int]:
    """kill -9 of the first process of each, as one; gives their process ids."""
    victims = [run.processes(*place)[0] for place in places]
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    return [victim.pid for victim in victims]


def is_there(run: HeronRun, place: Place, former: int = 0) -> bool:
    """Whether there is one, other than the former one."""
    return any(each.pid != former for each in run.processes(*place))


def test_no_line_is_lost_with_a_container(sandbox: Sandbox) -> None:
    """Each in turn, the topology manager's too: its processes go with it, and come back with it."""
    lines = Lines(sandbox)
    lines.flow("the start")
    for place in CONTAINERS:
        kill(lines.run, place)
        lines.flow(f"kill -9 of {place}")
    lines.finish()


def test_no_line_is_lost_when_two_die_at_once(sandbox: Sandbox) -> None:
    """Each pair of processes that cover for each other."""
    lines = Lines(sandbox)
    lines.flow("the start")
    for pair in PAIRS:
        kill(lines.run, *pair)
        lines.flow(f"kill -9 of {pair}")
    lines.finish()


def test_one_may_die_in_its_first_second(sandbox: Sandbox) -> None:
    """One of each kind as soon as it is there at all, and its successor as soon as that is."""
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
    """Kills whoever is there, again and again; how often."""
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


def test_one_that_is_killed_over_and_over_comes_back(sandbox: Sandbox) -> None:
    """Ten times a second for 6 s, and more often than what dies by itself may; then it is back within a back-off."""
    settings = ("heron.executor.restart.backoff.max.s=1", "heron.executor.restart.limit=2")
    lines = Lines(sandbox, *(word for each in settings for word in ("--set", each)))
    lines.flow("the start")
    assert killed_for(lines.run, STMGR_1, 6.0, 0.1) > 3
    lines.flow("the last death")
    lines.finish()


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", [SPLIT, STMGR_1, TMANAGER, CONTAINERS[1]])
def test_a_minute_of_deaths_is_outlived(sandbox: Sandbox, place: Place) -> None:
    """Once a second, with the back-off and the limit that there are by default."""
    lines = Lines(sandbox)
    lines.flow("the start")
    assert killed_for(lines.run, place, 60.0, 1.0) > 8
    lines.flow("the last death")
    lines.finish()

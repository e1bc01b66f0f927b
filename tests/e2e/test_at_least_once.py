"""At-least-once delivery: trees complete, fail or expire, the spout learns the result, and nothing is lost."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import psutil
import pytest
from line_journal import PATIENT, Lines

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

NUMBERS = 300
ODD = [number for number in range(NUMBERS) if number % 10 == 3]
TIMEOUT_S = 5  # no other tuple may take this long, on a busy machine


class ReplayRecords:
    """The records of the topology ``replays``."""

    def __init__(self, run: HeronRun) -> None:
        ((acked, failed, most_open),) = run.results("numbers").values()
        self.acked, self.failed, (self.most_open,) = numbers(acked), numbers(failed), numbers(most_open)
        self.seen: Counter[int] = Counter()
        for rows in run.results("last").values():
            self.seen.update({number: times for number, times in map(numbers, rows)})  # noqa: C416  # lists, not pairs


def numbers(row: Iterable[object]) -> list[int]:
    """Return a row of a result, checked."""
    found = list(row)
    checked = [each for each in found if isinstance(each, int)]
    assert len(checked) == len(found)
    return checked


def run_replays(sandbox: Sandbox, habit: str, **options: int) -> ReplayRecords:
    """Run ``replays`` to its end and return its records."""
    args = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    run = sandbox.start("replays.py", args=("--habit", habit, "--numbers", str(NUMBERS), *args))
    run.finished()
    return ReplayRecords(run)


def test_counts_of_five_million_words_are_exact_when_every_tuple_is_acked(sandbox: Sandbox) -> None:
    """Two spouts, three splitters and four counters in three containers, with anchors and a fields grouping."""
    words = 5_000_000
    run = sandbox.start("acked_counting.py", args=("--words", str(words)))
    report = run.finished()
    counted: Counter[str] = Counter()
    for rows in run.results("count").values():
        counted.update({str(word): int(str(count)) for word, count in rows})
    expected: Counter[str] = Counter()
    for line in range(words // 10):
        expected.update(f"w{(line % 1000 * 7 + place * 131) % 1009}" for place in range(10))
    assert counted == expected
    assert list(map(numbers, run.results("lines").values())) == [[words // 20, 0]] * 2
    figures = {name: (each.executed, each.acked, each.failed) for name, each in report.components.items()}
    assert figures == {
        "lines": (0, words // 10, 0),
        "split": (words // 10, words // 10, 0),
        "count": (words, words, 0),
    }


def test_a_failed_tree_is_reported_at_once_and_replayed(sandbox: Sandbox) -> None:
    """A fail counts although an ack follows it, and although `end` was called long before."""
    result = run_replays(sandbox, "fail")
    assert sorted(result.failed) == ODD
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter([*range(NUMBERS), *ODD])


def test_an_unacked_tree_expires_and_is_replayed(sandbox: Sandbox) -> None:
    """`topology.message.timeout.secs`, with a bolt that forgets some tuples once."""
    result = run_replays(sandbox, "swallow", timeout=TIMEOUT_S)
    assert sorted(result.failed) == ODD
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter(range(NUMBERS))


def test_late_acks_are_harmless(sandbox: Sandbox) -> None:
    """A tuple that a bolt keeps beyond its timeout is replayed, and its own ack has no effect."""
    result = run_replays(sandbox, "late", timeout=TIMEOUT_S)
    assert sorted(result.failed) == ODD
    assert sorted(result.acked) == list(range(NUMBERS))
    assert not result.seen.keys() ^ set(range(NUMBERS))


def test_without_timeouts_nothing_ever_expires(sandbox: Sandbox) -> None:
    """`topology.enable.message.timeouts: false`: the same late acks are in time."""
    result = run_replays(sandbox, "late", timeout=-1)
    assert result.failed == []
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter(range(NUMBERS))


def test_spout_pending_bounds_the_roots_in_flight(sandbox: Sandbox) -> None:
    """With one pending root, acks come in the order of the emits."""
    result = run_replays(sandbox, "none", pending=1)
    assert result.most_open == 1
    assert result.acked == list(range(NUMBERS))


def test_a_thread_of_a_bolt_may_emit_and_ack(sandbox: Sandbox) -> None:
    """This includes the last tuples, after which the bolt receives nothing."""
    result = run_replays(sandbox, "thread")
    assert result.failed == []
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter(range(NUMBERS))


def test_a_window_holds_its_tuples_until_it_expires(sandbox: Sandbox) -> None:
    """Emits are anchored in a whole window, so every tuple of the window waits for all of them."""
    result = run_replays(sandbox, "window")
    assert result.failed == []
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter(range(NUMBERS))


def test_tuples_of_finish_are_replayed_until_they_are_acked(sandbox: Sandbox) -> None:
    """The end of the bolt waits for the acks, and its own instance stores the tuples (design D15)."""
    result = run_replays(sandbox, "finish")
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.seen == Counter([*range(NUMBERS)] * 2)


VICTIMS = [
    ("instance", "/lines-"),
    ("instance", "/split-"),
    ("instance", "/journal-"),
    ("stmgr", "/c1/"),
    ("stmgr", "/c2/"),
]


@pytest.mark.parametrize(("role", "name"), VICTIMS)
def test_no_line_is_lost_when_a_process_is_killed(sandbox: Sandbox, role: str, name: str) -> None:
    """kill -9 in mid-run: tuples in flight are replayed because the loss is noticed, without a timeout."""
    lines = Lines(sandbox, pause_s=0.005)
    lines.flow("the start")
    lines.run.processes(role, name)[0].kill()
    lines.flow("the kill")
    lines.finish(40.0)


@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
def test_no_line_is_lost_when_many_processes_are_killed(sandbox: Sandbox, seed: int) -> None:
    """Several kills at a time, also while processes restart and while the topology ends."""
    chance = random.Random(seed)
    lines = Lines(sandbox, *PATIENT, pause_s=0.005)
    lines.flow("the start")
    run, pause = lines.run, threading.Event()
    for number in range(25):
        if number == 18:
            lines.flow("most of the kills", 60.0)
            lines.let_go()
        for role, name in chance.sample(VICTIMS, chance.choice((1, 1, 2, 3))):
            if found := run.processes(role, name):
                with contextlib.suppress(psutil.Error):
                    chance.choice(found).kill()
        pause.wait(chance.uniform(0.05, 1.5))
        if run.process.poll() is not None:
            break
    run.finished(120.0)
    print(f"{lines.check()} words came more than once")  # noqa: T201  # shown with -s

"""At-least-once delivery: trees complete, fail or expire, the spout learns the result, and nothing is lost."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import psutil
import pytest

from line_journal import PATIENT, Lines

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

NUMBERS, FEW = 300, 60
PENDING = 100
TIMEOUT_S = 3


def ending_in(digit: int, count: int) -> range:
    """The numbers below `count` that the bolt ``odd`` fails (3), forgets (4) or keeps (5) when they first come."""
    return range(digit, count, 10)


class ReplayRecords:
    """The records of the topology ``replays``."""

    def __init__(self, run: HeronRun) -> None:
        ((acked, failed, most_open),) = run.results("numbers").values()
        self.acked, self.failed, (self.most_open,) = numbers(acked), numbers(failed), numbers(most_open)
        self.seen: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for rows in run.results("last").values():
            for bolt, *row in rows:
                number, times = numbers(row)
                self.seen[str(bolt)][number] += times

    def attempts(self) -> Counter[int]:
        """How often the spout has emitted each number."""
        return Counter(self.acked) + Counter(self.failed)


def numbers(row: Iterable[object]) -> list[int]:
    """Return a row of a result, checked."""
    found = list(row)
    checked = [each for each in found if isinstance(each, int)]
    assert len(checked) == len(found)
    return checked


def run_replays(sandbox: Sandbox, **options: int) -> ReplayRecords:
    """Run ``replays`` to its end and return its records."""
    args = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    run = sandbox.start("replays.py", args=tuple(args))
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


@pytest.mark.guarantee
def test_a_tree_ends_once_whatever_its_bolts_do(sandbox: Sandbox) -> None:
    """Without timeouts, a tree is acked or fails only by its bolts, and the spout keeps its limit of pending roots.

    A fail counts although an ack follows it, and although `end` was called long before. A tuple may be acked long after
    the timeout that is switched off, by a thread of the bolt, or with the whole window in which its emits are anchored.
    Tuples of `finish` are replayed until they are acked.

    Guarantee: a tree is acked or fails once, whatever its bolts do, and `topology.max.spout.pending` bounds the
    roots in flight.
    """
    result = run_replays(sandbox, numbers=NUMBERS, timeout=-1, pending=PENDING)
    assert sorted(result.failed) == list(ending_in(3, NUMBERS))
    assert sorted(result.acked) == list(range(NUMBERS))
    assert result.most_open == PENDING
    for bolt in ("odd", "threaded", "windowed"):
        assert result.seen[bolt] == result.attempts(), bolt
    assert result.seen["finishing"] == Counter([*range(NUMBERS)] * 2)


@pytest.mark.guarantee
def test_a_tree_that_is_not_complete_in_time_expires_and_is_replayed(sandbox: Sandbox) -> None:
    """The bolt forgets some tuples, and keeps some until their replays come, when its acks have no effect.

    On a busy machine other trees may expire too, so only the number of attempts of each is exact.

    Guarantee: a tree that is not complete in time expires and is replayed.
    """
    result = run_replays(sandbox, numbers=FEW, timeout=TIMEOUT_S)
    forgotten = ending_in(4, FEW)
    assert {*forgotten, *ending_in(3, FEW), *ending_in(5, FEW)} <= set(result.failed)
    assert sorted(result.acked) == list(range(FEW))
    assert result.seen["odd"] == result.attempts() - Counter(forgotten)
    assert result.seen["threaded"] == result.attempts()


VICTIMS = [
    ("instance", "/lines-"),
    ("instance", "/split-"),
    ("instance", "/journal-"),
    ("stmgr", "/c1/"),
    ("stmgr", "/c2/"),
]


@pytest.mark.chaos
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

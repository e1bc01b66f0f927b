"""Overload that is shed by policy: what is kept stands for all that was offered."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

Counts = dict[str, float]
Window = tuple[Counts, Counts, list[tuple[float, float]], list[float], float]
"""Of the last two thirds: the sum and the least weight of each key, sum and variance of each level, delays in s.

The last number is the time that the machine has taken from the bolt, in seconds.
"""
Weighed = tuple[Counts, Counts, float, Window]

KEYS = 100
TUPLES = 30_000
SIGMAS = 5

TARGET_S = 1.0
OFFERED = 6_000
"""In 15 s: so few that a busy machine can do it, too."""
OFFERED_KEYS = 400


def shed_of(sandbox: Sandbox) -> int:
    """Return the tuples that the last records of the spout count as shed."""
    counts = [0]
    for line in sandbox.log_text("metrics-*.jsonl").splitlines():
        record = json.loads(line) if line.endswith("}") else {"metrics": ()}
        counts += [int(each["value"]) for each in record["metrics"] if each["name"] == "shed-count"]
    return max(counts)


def weighed(run: HeronRun) -> list[Weighed]:
    """Return what each of the last bolts has added up."""
    return msgspec.convert(list(run.results("weigh").values()), list[Weighed])


def overloaded(sandbox: Sandbox, shed: dict[str, object]) -> list[Window]:
    """Offer twice as many tuples as the bolts take, and return what they added up; each tuple may wait for a second.

    Without shedding, half of the tuples would wait at the end: the mean delay would be 5 s.
    """
    load = ("--pace", "400", "--capacity", "100", "--tuples", str(OFFERED), "--keys", str(OFFERED_KEYS))
    shedding = json.dumps(shed | {"latency": TARGET_S})
    run = sandbox.start("shedding.py", args=(*load, "--mode", "ATLEAST_ONCE", "--shed", shedding))
    run.finished()
    windows = [window for *_, window in weighed(run)]
    lates_s = sorted(late_s for _, _, _, each, _ in windows for late_s in each)
    lost_s = sum(each for *_, each in windows)
    assert lates_s[len(lates_s) // 2] < 1.5 * TARGET_S + lost_s
    assert lates_s[len(lates_s) * 99 // 100] < 3 * TARGET_S + lost_s
    assert 0.3 < len(lates_s) / (OFFERED * 2 / 3) < 0.7, "what the bolts can take, and no less"
    return windows


def offered(level: int | None = None) -> int:
    """Return the sum of the values that were offered in the last two thirds, of all levels or of one."""
    return sum(1 + each % 5 for each in range(OFFERED // 3, OFFERED) if level in {None, each % 3})


@pytest.mark.guarantee
@pytest.mark.parametrize("mode", ["ATMOST_ONCE", pytest.param("ATLEAST_ONCE", marks=pytest.mark.matrix)])
def test_weights_of_what_is_kept_add_up_to_what_was_offered(sandbox: Sandbox, mode: str) -> None:
    """Also behind a bolt that passes tuples on. The author hears of each tuple, and each one is kept or counted.

    Guarantee: a spout with `topology.shed` counts what it sheds, and the weights of the rest add up to all.
    """
    shed = json.dumps({"policy": "uniform", "rate": 2000})
    run = sandbox.start("shedding.py", args=("--shed", shed, "--mode", mode))
    report = run.finished()
    assert msgspec.convert(list(run.results("offer").values()), list[tuple[int, int]]) == [(TUPLES, 0)]
    emitted = report.components["offer"].emitted
    assert emitted + shed_of(sandbox) == TUPLES
    results = weighed(run)
    assert sum(sum(kept.values()) for kept, *_ in results) == emitted
    weight = sum(sum(weights.values()) for _, weights, *_ in results)
    variance = sum(each for _, _, each, _ in results)
    assert variance > 0
    assert weight == pytest.approx(TUPLES, abs=SIGMAS * variance**0.5)
    assert "with shed tuples:" in run.stderr


def test_keys_are_kept_whole(sandbox: Sandbox) -> None:
    """Some keys have all their tuples from the first to the last period, and some have lost most of them."""
    shed = json.dumps({"policy": "by-key", "rate": 2000, "key": "key"})
    run = sandbox.start("shedding.py", args=("--shed", shed))
    run.finished()
    kept = Counter[str]()
    for each, *_ in weighed(run):
        kept.update({key: round(count) for key, count in each.items()})
    complete = [key for key, count in kept.items() if count == TUPLES // KEYS]
    assert 5 <= len(complete) <= 50
    assert sum(count < TUPLES // KEYS / 2 for count in kept.values()) + KEYS - len(kept) >= 30


def test_a_latency_is_held_by_priorities_and_the_highest_one_is_complete(sandbox: Sandbox) -> None:
    """The border is within the second of three levels, or near it: the sum of the highest one is right."""
    windows = overloaded(sandbox, {"policy": "priority", "priority": "level"})
    low, middle, high = (
        tuple(sum(levels[level][part] for _, _, levels, *_ in windows) for part in (0, 1)) for level in range(3)
    )
    assert high[0] == pytest.approx(offered(2), abs=SIGMAS * high[1] ** 0.5)
    assert 0.2 * offered(1) < middle[0] < 1.3 * offered(1)
    assert low[0] < 0.5 * offered(0), "nothing is known of most of them"


def test_a_latency_is_held_by_keys_and_the_sum_is_corrected(sandbox: Sandbox) -> None:
    """Of a key, all tuples are kept or none: so the variance is that of the sums of keys."""
    windows = overloaded(sandbox, {"policy": "by-key", "key": "key"})
    least = {key: weight for _, weights, *_ in windows for key, weight in weights.items()}
    sums = {key: each for part, *_ in windows for key, each in part.items()}
    variance = sum((1 - 1 / least[key]) * each**2 for key, each in sums.items())
    assert variance > 0
    assert sum(sums.values()) == pytest.approx(offered(), abs=SIGMAS * variance**0.5)
    of_keys = sum(weight * (weight - 1) for weight in least.values())
    assert sum(least.values()) == pytest.approx(OFFERED_KEYS, abs=SIGMAS * of_keys**0.5)

"""Overload that is shed by policy: what is kept stands for all that was offered."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

Counts = dict[str, float]
KEYS = 100
TUPLES = 30_000


def shed_of(sandbox: Sandbox) -> int:
    """Return the tuples that the last records of the spout count as shed."""
    counts = [0]
    for line in sandbox.log_text("metrics-*.jsonl").splitlines():
        record = json.loads(line) if line.endswith("}") else {"metrics": ()}
        counts += [int(each["value"]) for each in record["metrics"] if each["name"] == "shed-count"]
    return max(counts)


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
    results = msgspec.convert(list(run.results("weigh").values()), list[tuple[Counts, Counts, float]])
    assert sum(sum(kept.values()) for kept, _, _ in results) == emitted
    weight = sum(sum(weights.values()) for _, weights, _ in results)
    variance = sum(each for _, _, each in results)
    assert variance > 0
    assert weight == pytest.approx(TUPLES, abs=5 * variance**0.5)
    assert "with shed tuples:" in run.stderr


def test_keys_are_kept_whole(sandbox: Sandbox) -> None:
    """Some keys have all their tuples from the first to the last period, and some have lost most of them."""
    shed = json.dumps({"policy": "by-key", "rate": 2000, "key": "key"})
    run = sandbox.start("shedding.py", args=("--shed", shed))
    run.finished()
    kept = Counter[str]()
    for each, _, _ in msgspec.convert(list(run.results("weigh").values()), list[tuple[Counts, Counts, float]]):
        kept.update({key: round(count) for key, count in each.items()})
    complete = [key for key, count in kept.items() if count == TUPLES // KEYS]
    assert 5 <= len(complete) <= 50
    assert sum(count < TUPLES // KEYS / 2 for count in kept.values()) + KEYS - len(kept) >= 30

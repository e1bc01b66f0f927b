"""Pipelines that shed: what is left has weights, and windows and views are corrected by them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from heron.errors import UsageError
from heron_streamlet import Builder, Items, StageContext, Streamlet, tumbling_window
from heron_streamlet.sampling import CountEstimate, DistinctEstimate, SumEstimate, shed
from heron_streamlet.sampling.shedder import Shedder
from heron_streamlet.views import View
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.simulated_runs import run_simulated

ROWS = [(float(number), f"topic {number % 7}", number % 5) for number in range(4000)]


class Ticking(FakeClock):
    """Each reading takes a millisecond, so 1,000 elements are offered in a second."""

    def monotonic_s(self) -> float:
        self.advance(0.001)
        return super().monotonic_s()


@pytest.fixture(autouse=True)
def _ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shedder, "clock", Ticking())


def rows() -> tuple[Builder, Streamlet[tuple[float, str, int]]]:
    builder = Builder()
    return builder, builder.new_source(Items(ROWS))


def test_elements_keep_their_weights_through_operators() -> None:
    """Each result of a kept element stands for as many as the element."""
    builder, source = rows()
    kept = shed(source, rate=250)
    words = kept.map(lambda row: row[1]).filter(lambda topic: topic != "topic 0").flat_map(str.split)
    words.weighted.to_sink(Collect("words"))
    found = run_simulated(builder)["words"]
    first, later = sorted({weight for weight, _ in found})
    assert (first, later) == (1.0, pytest.approx(4.0, rel=0.05))  # in the first period nothing is known
    total = sum(weight for weight, word in found if word == "topic")
    assert total == pytest.approx(len(ROWS) * 6 / 7, rel=0.15)


def test_windows_count_what_was_shed() -> None:
    """Counts and sums of each key; the interval holds nearly all of them."""
    builder, source = rows()
    keyed = shed(source, rate=250).event_time(lambda row: row[0]).key_by(lambda row: row[1], lambda row: row[2])
    keyed.count_by_key_and_window(tumbling_window(4000)).to_sink(Collect("counts"))
    keyed.aggregate_by_key_and_window(tumbling_window(4000), SumEstimate()).to_sink(Collect("sums"))
    found = run_simulated(builder)
    counts, sums = Counter[str](), Counter[str]()
    for _, topic, number in ROWS:
        counts[topic] += 1
        sums[topic] += number
    for name, exact in (("counts", counts), ("sums", sums)):
        assert len(found[name]) == 7
        held = sum(each.low <= exact[place.key] <= each.high for place, each in found[name])
        assert held >= 6


def test_keys_that_are_kept_are_exact_and_stand_for_others() -> None:
    """Sums over the kept keys estimate those over all keys, and the number of keys too."""
    builder, source = rows()
    kept = shed(source, "by-key", rate=500, key=lambda row: row[0] // 4)  # 1,000 keys of four rows
    timed = kept.event_time(lambda row: row[0])
    counts = timed.key_by(lambda row: row[0] // 4).count_kept_keys(tumbling_window(4000))
    counts.weighted.to_sink(Collect("counts"))
    distinct = timed.key_by(lambda _: None, lambda row: row[0] // 4)
    distinct.aggregate_by_key_and_window(tumbling_window(4000), DistinctEstimate()).to_sink(Collect("distinct"))
    found = run_simulated(builder)
    assert {count for _, (_, count) in found["counts"]} == {4}
    [(_, keys)] = found["distinct"]
    assert keys == pytest.approx(1000, rel=0.15)
    assert sum(weight for weight, _ in found["counts"]) == keys


def test_low_priorities_are_shed_first() -> None:
    """What has the highest priority is complete."""
    builder, source = rows()
    shed(source, "priority", rate=400, priority=lambda row: row[2]).weighted.to_sink(Collect("rows"))
    found = run_simulated(builder)["rows"]
    kept = Counter(row[2] for _, row in found)
    assert kept[4] == 800
    assert kept[0] < 60


def test_a_late_source_sheds_until_it_has_caught_up() -> None:
    """The age of an element says how long it has waited. The clock of the shedder is that of this test."""
    shedder = shed(rows()[1], latency=2, time=lambda row: row[0]).weighted._draft.operator.transformer  # type: ignore[attr-defined]
    clock = shedder.clock
    shedder.setup(StageContext("shed"))
    behind_s, shares = 0.0, []
    for _ in range(60_000):  # twice as many are offered as are processed
        kept = shedder.transform((clock.wall_s() - behind_s, "", 0))
        behind_s = max(0.0, behind_s + (0.001 if kept else -0.001))
        shares.append(bool(kept))
    assert behind_s == pytest.approx(2.0, rel=0.5)
    assert sum(shares[-20_000:]) / 20_000 == pytest.approx(0.5, rel=0.1)


def test_views_take_the_estimates() -> None:
    """The graph is complete: `to_view` checks the monoid when it is called."""
    builder, source = rows()
    keyed = shed(source, rate=250).event_time(lambda row: row[0]).key_by(lambda row: row[1])
    keyed.to_view(View("hits", CountEstimate(), span=4000))
    assert any("view" in line for line in builder.graph().lines())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"policy": "unifrom", "rate": 1}, "nearest: 'uniform'"),
        ({}, "one target"),
        ({"rate": 1, "latency": 1}, "one target"),
        ({"rate": 0}, "above 0"),
        ({"latency": 1}, "latency and time belong together"),
        ({"policy": "by-key", "rate": 1}, "key and the policy"),
        ({"policy": "priority", "rate": 1}, "priority and the policy"),
        ({"rate": 1, "key": str}, "key and the policy"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    """At the line of the author."""
    with pytest.raises(UsageError, match=problem):
        shed(rows()[1], **arguments)


def test_counts_of_another_policy_are_refused() -> None:
    """A corrected count of a key that was kept whole would be wrong by its weight."""
    by_key = shed(rows()[1], "by-key", rate=1, key=lambda row: row[1]).key_by(lambda row: row[1])
    with pytest.raises(UsageError, match="count_kept_keys"):
        by_key.count_by_key_and_window(tumbling_window(1))
    with pytest.raises(UsageError, match="count_by_key_and_window"):
        shed(rows()[1], rate=1).key_by(lambda row: row[1]).count_kept_keys(tumbling_window(1))

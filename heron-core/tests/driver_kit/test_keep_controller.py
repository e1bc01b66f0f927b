"""The share that a spout keeps, in a model of a source and a queue with one server."""

from __future__ import annotations

import pytest

from heron.driver_kit.keep_controller import PERIOD_S, KeepController, LatencyController, Offer, RateController


class Queue:
    """A queue that serves `served_per_s` tuples per second, at a pace that does not depend on its length."""

    def __init__(self, served_per_s: float) -> None:
        self.served_per_s = served_per_s
        self.tuples = 0.0

    @property
    def delay_s(self) -> float:
        return self.tuples / self.served_per_s

    def pass_period(self, arrived: float) -> float:
        """Returns how many tuples have left."""
        left = min(self.tuples + arrived, self.served_per_s * PERIOD_S)
        self.tuples += arrived - left
        return left


def shares(controller: KeepController, queue: Queue, offered_per_s: float, seconds: float) -> list[tuple[float, float]]:
    """The share and the delay at the end of each period."""
    found = []
    for _ in range(round(seconds / PERIOD_S)):
        offered = offered_per_s * PERIOD_S
        left = queue.pass_period(offered * controller.share)
        controller.follow(Offer(offered, PERIOD_S, queue.delay_s, left))
        found.append((controller.share, queue.delay_s))
    return found


@pytest.mark.parametrize("load", [2, 10, 100])
def test_a_rate_is_kept_from_the_first_period_on(load: int) -> None:
    """The first period measures the offer, so there is no ramp."""
    found = shares(RateController(1000), Queue(1e9), load * 1000, 5)
    assert [share for share, _ in found] == pytest.approx([1 / load] * len(found))


def test_a_rate_below_the_target_sheds_nothing() -> None:
    """Also not after an overload has ended."""
    controller = RateController(1000)
    shares(controller, Queue(1e9), 5000, 5)
    assert shares(controller, Queue(1e9), 500, 10)[-1][0] == 1.0


def test_small_changes_of_the_offer_change_nothing() -> None:
    """Each change of the share ends a batch."""
    controller = RateController(1000)
    controller.follow(Offer(500, PERIOD_S))
    assert not any(controller.follow(Offer(500 + number % 7, PERIOD_S)) for number in range(100))


@pytest.mark.parametrize("load", [2, 10])
@pytest.mark.parametrize("target_s", [0.5, 2.0, 5.0])
def test_a_delay_stays_at_its_target(load: int, target_s: float) -> None:
    """Also in the first seconds of an overload; and nothing is shed that the queue could take."""
    queue = Queue(1000)
    found = shares(LatencyController(target_s), queue, load * 1000, 20 + 10 * target_s)
    assert all(delay_s < 1.2 * target_s + load * PERIOD_S for _, delay_s in found)
    later = found[len(found) // 2 :]
    assert all(abs(delay_s - target_s) < target_s / 10 for _, delay_s in later)
    assert sum(share for share, _ in later) / len(later) == pytest.approx(1 / load, rel=0.05)


def test_a_delay_below_its_target_sheds_nothing() -> None:
    """A controller that shed before the target was reached would lose tuples without a reason."""
    assert {share for share, _ in shares(LatencyController(1.0), Queue(1000), 900, 60)} == {1.0}


def test_all_is_kept_again_after_an_overload() -> None:
    """The share returns within some seconds."""
    controller, queue = LatencyController(1.0), Queue(1000)
    shares(controller, queue, 10_000, 60)
    assert shares(controller, queue, 500, 6)[-1] == (1.0, 0.0)


def test_a_period_in_which_the_process_stood_still_changes_little() -> None:
    """Nothing was offered in it, and nothing has left."""
    controller, queue = LatencyController(1.0), Queue(1000)
    shares(controller, queue, 2000, 20)
    controller.follow(Offer(0, 3.0, queue.delay_s, 0))
    assert controller.share == pytest.approx(0.5, rel=0.2)


def test_a_share_that_contains_no_key_grows() -> None:
    """Nothing leaves, because nothing is kept; and nothing waits."""
    controller = LatencyController(1.0)
    for _ in range(100):
        controller.follow(Offer(100, PERIOD_S, 100.0, 0))
    for _ in range(80):
        controller.follow(Offer(100, PERIOD_S, 0.0, 0))
    assert controller.share == 1.0


def test_something_is_kept_always() -> None:
    """Without a tuple that is kept nobody would see when the overload ends."""
    controller = LatencyController(1.0)
    for _ in range(1000):
        controller.follow(Offer(100, PERIOD_S, 100.0, 0))
    assert controller.share > 0

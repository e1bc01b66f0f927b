"""What queries of Nexmark find in rounds of a block of ten seconds: a recount without windows of an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["ANSWERS", "Answer"]

Answer = tuple[int, int]
"""The number of results and the sum of one number of each."""

_SKIP = 123
_HALF_MS = 5000


def _of(block: Iterable[Any], kind: str) -> list[Any]:
    return [event for event in block if type(event).__name__ == kind]


def _prices(block: Sequence[Any], rounds: int) -> Answer:
    """q0: the events, and the prices of the bids."""
    return rounds * len(block), rounds * sum(bid.price for bid in _of(block, "Bid"))


def _in_euro(block: Sequence[Any], rounds: int) -> Answer:
    bids = _of(block, "Bid")
    return rounds * len(bids), rounds * sum(bid.price * 89 // 100 for bid in bids)


def _selected(block: Sequence[Any], rounds: int) -> Answer:
    prices = [bid.price for bid in _of(block, "Bid") if bid.auction % _SKIP == 0]
    return rounds * len(prices), rounds * sum(prices)


def _hottest(block: Sequence[Any], rounds: int) -> Answer:
    """q5: a window has the halves of a block, or the second half of a block and the first of the next, or one half."""
    begin = min(event.time for event in block)
    halves: list[Counter[int]] = [Counter(), Counter()]
    for bid in _of(block, "Bid"):
        halves[(bid.time - begin) // _HALF_MS][bid.auction] += 1
    results = total = 0
    for counts, times in ((halves[0], 1), (halves[1], 1), (halves[0] + halves[1], 2 * rounds - 1)):
        most = max(counts.values())
        hot = sum(count == most for count in counts.values())
        results, total = results + times * hot, total + times * hot * most
    return results, total


def _highest(block: Sequence[Any], rounds: int) -> Answer:
    prices = [bid.price for bid in _of(block, "Bid")]
    found = prices.count(max(prices))
    return rounds * found, rounds * found * max(prices)


def _sellers(block: Sequence[Any], rounds: int) -> Answer:
    both = {person.id for person in _of(block, "Person")} & {auction.seller for auction in _of(block, "Auction")}
    return rounds * len(both), rounds * sum(both)


ANSWERS: Mapping[str, Callable[[Sequence[Any], int], Answer]] = {
    "q0": _prices,
    "q1": _in_euro,
    "q2": _selected,
    "q5": _hottest,
    "q7": _highest,
    "q8": _sellers,
}
"""For each query, what it finds in so many rounds of a block."""

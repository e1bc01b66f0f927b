"""What the queries of Nexmark mean: a recount of all events at once, without windows or state of the engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["ANSWERS"]

Events = Sequence[Any]


def of(events: Events, kind: str) -> list[Any]:
    return [each for each in events if type(each).__name__ == kind]


def ends(time_ms: int, size_s: int, slide_s: int) -> Iterable[int]:
    """The ends of the windows that contain this time, in seconds."""
    last = time_ms // 1000 // slide_s * slide_s + size_s
    return [end for end in range(last, last - size_s, -slide_s) if end * 1000 > time_ms]


def q1(events: Events) -> list[Any]:
    return [(bid.auction, bid.bidder, bid.price * 89 // 100, bid.time, bid.extra) for bid in of(events, "Bid")]


def q2(events: Events) -> list[Any]:
    return [(bid.auction, bid.price) for bid in of(events, "Bid") if bid.auction % 123 == 0]


def q3(events: Events) -> list[Any]:
    persons = {each.id: each for each in of(events, "Person") if each.state in {"OR", "ID", "CA"}}
    sold = [each for each in of(events, "Auction") if each.category == 10 and each.seller in persons]
    return [
        (persons[each.seller].name, persons[each.seller].city, persons[each.seller].state, each.id) for each in sold
    ]


def winners(events: Events) -> list[tuple[Any, int]]:
    """The auctions with a bid in time, and their highest price."""
    auctions = {each.id: each for each in of(events, "Auction")}
    prices: dict[int, list[int]] = defaultdict(list)
    for bid in of(events, "Bid"):
        auction = auctions.get(bid.auction)
        if auction is not None and auction.time <= bid.time <= auction.expires:
            prices[auction.id].append(bid.price)
    return [(auctions[number], max(some)) for number, some in prices.items()]


def mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)


def q4(events: Events) -> list[Any]:
    prices: dict[int, list[int]] = defaultdict(list)
    for auction, price in winners(events):
        prices[auction.category].append(price)
    return [(category, mean(some)) for category, some in prices.items()]


def q5(events: Events) -> list[Any]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in of(events, "Bid"):
        for end in ends(bid.time, 10, 5):
            counts[end][bid.auction] += 1
    return [
        (end, auction, count)
        for end, some in counts.items()
        for auction, count in some.items()
        if count == max(some.values())
    ]


def q6(events: Events) -> list[Any]:
    sold: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for auction, price in winners(events):
        sold[auction.seller].append((auction.expires, auction.id, price))
    return [(seller, mean([price for _, _, price in sorted(some)[-10:]])) for seller, some in sold.items()]


def q7(events: Events) -> list[Any]:
    bids: dict[int, list[Any]] = defaultdict(list)
    for bid in of(events, "Bid"):
        bids[next(iter(ends(bid.time, 10, 10)))].append(bid)
    return [
        (end, bid.auction, bid.bidder, bid.price)
        for end, some in bids.items()
        for bid in some
        if bid.price == max(each.price for each in some)
    ]


def q8(events: Events) -> list[Any]:
    sellers = {(each.seller, next(iter(ends(each.time, 10, 10)))) for each in of(events, "Auction")}
    persons = [(each.id, each.name, next(iter(ends(each.time, 10, 10)))) for each in of(events, "Person")]
    return [each for each in persons if (each[0], each[2]) in sellers]


def q11(events: Events) -> list[Any]:
    times: dict[int, list[int]] = defaultdict(list)
    for bid in of(events, "Bid"):
        times[bid.bidder].append(bid.time)
    found = []
    for bidder, all_of_it in times.items():
        some: list[int] = []
        for time in [*sorted(all_of_it), 1 << 60]:
            if some and time - some[-1] > 10_000:
                found.append((bidder, len(some), some[0] / 1000, (some[-1] + 10_000) / 1000))
                some = []
            some.append(time)
    return found


def q12(events: Events) -> list[Any]:
    """All bids are in one window of a clock that does not move."""
    return list(Counter([bid.bidder for bid in of(events, "Bid")]).items())


ANSWERS: Mapping[str, Callable[[Events], list[Any]]] = {
    "q0": list, "q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5, "q6": q6, "q7": q7, "q8": q8, "q11": q11, "q12": q12
}  # fmt: skip

"""The queries of Nexmark q0 to q8, q11 and q12 on records.

Windows have ten seconds, and close by event time, except for those of q12. The source is in order, so there is no lag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from nexmark_events import Auction, Bid, Event, Person

from heron_streamlet import KeyedWindow, Streamlet, Window, session_window, sliding_window, tumbling_window

__all__ = ["AUCTION_SKIP", "PERIOD_S", "QUERIES", "SIZE_S", "highest_bid", "hottest_auctions"]

AUCTION_SKIP = 123
SIZE_S, PERIOD_S = 10, 5
CATEGORY, NEAR = 10, ("OR", "ID", "CA")
LAST_AUCTIONS = 10

E = TypeVar("E", Person, Auction, Bid)
Priced = tuple[int, int, int]
"""Price, auction and bidder of a bid."""


def of_kind(events: Streamlet[Event], kind: type[E]) -> Streamlet[E]:
    """The events of one class."""
    return cast("Streamlet[E]", events.filter(lambda each: type(each) is kind))


def timed(events: Streamlet[E]) -> Streamlet[E]:
    """The events with their event time."""
    return events.event_time(lambda each: each.time / 1000)


def passed(events: Streamlet[Event], tasks: int) -> Streamlet[Event]:  # `tasks` is for queries with keys
    """q0: all events."""
    return events.map(lambda each: each)


def in_euro(events: Streamlet[Event], tasks: int) -> Streamlet[Bid]:  # `tasks` is for queries with keys
    """q1: bids with prices in euro cents."""
    bids = of_kind(events, Bid)
    return bids.map(lambda bid: Bid(bid.auction, bid.bidder, bid.price * 89 // 100, bid.time, bid.extra))


def selection(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, int]]:  # `tasks` is for queries with keys
    """q2: the prices of bids for some auctions."""
    chosen = of_kind(events, Bid).filter(lambda bid: bid.auction % AUCTION_SKIP == 0)
    return chosen.map(lambda bid: (bid.auction, bid.price))


class Local(NamedTuple):
    """What q3 remembers of a seller: the person, or the auctions that came before the person."""

    person: Person | None = None
    waiting: tuple[int, ...] = ()


def local_items(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[str, str, str, int]]:
    """q3: who sells in a category in near states: name, city, state and auction."""
    near = of_kind(events, Person).filter(lambda person: person.state in NEAR)
    sold = of_kind(events, Auction).filter(lambda auction: auction.category == CATEGORY)
    persons = cast("Streamlet[tuple[int, Person | Auction]]", near.key_by(lambda person: person.id))
    auctions = cast("Streamlet[tuple[int, Person | Auction]]", sold.key_by(lambda auction: auction.seller))
    met = persons.union(auctions).map_with_state(Local, _meet).set_num_partitions(tasks)
    return met.flat_map(lambda pair: pair[1])


def _meet(state: Local, each: Person | Auction) -> tuple[Local, list[tuple[str, str, str, int]]]:
    person, auctions = state.person, state.waiting
    if isinstance(each, Person):
        person = each
    else:
        auctions = (*auctions, each.id)
    if person is None:
        return Local(None, auctions), []
    return Local(person), [(person.name, person.city, person.state, auction) for auction in auctions]


Offer = tuple[int, int]
"""Price and time of a bid."""


class Winning(NamedTuple):
    """The highest price of an auction has changed; `before` is None for its first bid."""

    auction: int
    seller: int
    category: int
    expires: int
    price: int
    before: int | None


class Offers(NamedTuple):
    """What is remembered of an auction: its highest price, and the bids that came before the auction."""

    auction: Auction | None = None
    price: int | None = None
    waiting: tuple[Offer, ...] = ()


def winning_bids(events: Streamlet[Event], tasks: int) -> Streamlet[Winning]:
    """Changes of the highest price of each auction, of bids from its begin to its end."""
    opened = of_kind(events, Auction).key_by(lambda auction: auction.id)
    offered = of_kind(events, Bid).key_by(lambda bid: bid.auction, lambda bid: (bid.price, bid.time))
    auctions = cast("Streamlet[tuple[int, Auction | Offer]]", opened)
    both = auctions.union(cast("Streamlet[tuple[int, Auction | Offer]]", offered))
    return both.map_with_state(Offers, _offer).set_num_partitions(tasks).flat_map(lambda pair: pair[1])


def _offer(state: Offers, each: Auction | Offer) -> tuple[Offers, list[Winning]]:
    if isinstance(each, Auction):
        auction, offers = each, state.waiting
    elif state.auction is None:
        return state._replace(waiting=(*state.waiting, each)), []
    else:
        auction, offers = state.auction, (each,)
    highest = max([price for price, time in offers if auction.time <= time <= auction.expires], default=None)
    if highest is None or (state.price is not None and highest <= state.price):
        return Offers(auction, state.price), []
    found = Winning(auction.id, auction.seller, auction.category, auction.expires, highest, state.price)
    return Offers(auction, highest), [found]


def category_prices(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, float]]:
    """q4: the average of the highest prices of the auctions of a category, again after each change."""
    changes = winning_bids(events, tasks).key_by(lambda found: found.category, _change)
    sums = changes.reduce_by_key(lambda one, other: (one[0] + other[0], one[1] + other[1])).set_num_partitions(tasks)
    return sums.map(lambda pair: (pair[0], pair[1][0] / pair[1][1]))


def _change(found: Winning) -> tuple[int, int]:
    """By how much the sum of prices and the number of auctions change."""
    return (found.price, 1) if found.before is None else (found.price - found.before, 0)


def _count_and_place(result: tuple[KeyedWindow[int], int]) -> list[tuple[int, int]]:
    place, count = result
    return [(count, place.key)]


def _with_most(some: list[Any], others: list[Any]) -> list[Any]:
    """Those that begin with the largest number, of two lists of which each has one number."""
    if some[0][0] == others[0][0]:
        return some + others
    return some if some[0][0] > others[0][0] else others


def _each(result: tuple[Window, Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The results of a window, each with the end of the window in seconds since 1970."""
    window, found = result
    return [(int(window.end_time), *each[1:], each[0]) for each in found]


def hottest_auctions(counts: Streamlet[tuple[KeyedWindow[int], int]]) -> Streamlet[tuple[int, int, int]]:
    """The auctions with the most bids of each window: the end of the window, the auction and its bids.

    The counts of one sliding window fall in one tumbling window, as `examples/pipelines/trends.py` explains.
    """
    most = counts.map(_count_and_place).reduce_by_window(tumbling_window(PERIOD_S), _with_most)
    return cast("Streamlet[tuple[int, int, int]]", most.flat_map(_each))


def hot_items(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, int, int]]:
    """q5: the auctions with the most bids in each sliding window."""
    bids = timed(of_kind(events, Bid)).key_by(lambda bid: bid.auction)
    counts = bids.count_by_key_and_window(sliding_window(SIZE_S, PERIOD_S)).set_num_partitions(tasks)
    return hottest_auctions(counts)


def seller_prices(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, float]]:
    """q6: the average of the highest prices of a seller's auctions, the ten that end last, again after each change."""
    won = winning_bids(events, tasks).key_by(lambda found: found.seller)
    return won.map_with_state(tuple, _last_ten).set_num_partitions(tasks)


def _last_ten(prices: tuple[Priced, ...], found: Winning) -> tuple[tuple[Priced, ...], float]:
    """State: end, auction and price of each; what once left the last ten cannot come back."""
    others = [each for each in prices if each[1] != found.auction]
    last = tuple(sorted([*others, (found.expires, found.auction, found.price)])[-LAST_AUCTIONS:])
    return last, sum(price for _, _, price in last) / len(last)


def highest_bid(bids: Streamlet[Priced]) -> Streamlet[tuple[int, int, int, int]]:
    """The bids with the highest price of each window: the end of the window, auction, bidder and price."""
    most = bids.map(lambda bid: [bid]).reduce_by_window(tumbling_window(SIZE_S), _with_most)
    return cast("Streamlet[tuple[int, int, int, int]]", most.flat_map(_each))


def highest_bids(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, int, int, int]]:
    """q7: the bids with the highest price in each window."""
    bids = timed(of_kind(events, Bid))  # a window without keys has one task
    return highest_bid(bids.map(lambda bid: (bid.price, bid.auction, bid.bidder)))


def new_sellers(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, str, int]]:
    """q8: persons who registered and began an auction in one window: person, name, and end of the window."""
    window = tumbling_window(SIZE_S)
    persons = timed(of_kind(events, Person)).key_by(lambda person: person.id, lambda person: person.name)
    auctions = timed(of_kind(events, Auction)).key_by(lambda auction: auction.seller)
    sold = auctions.count_by_key_and_window(window).set_num_partitions(tasks)  # a seller once for each window
    sellers = sold.key_by(lambda result: result[0].key)
    met = persons.join(sellers, window, lambda name, _: name).set_num_partitions(tasks)
    return met.map(lambda result: (result[0].key, result[1], int(result[0].window.end_time)))


def sessions(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, int, float, float]]:
    """q11: the bids of each bidder in a session: bidder, bids, begin and end in seconds since 1970."""
    bids = timed(of_kind(events, Bid)).key_by(lambda bid: bid.bidder)
    counts = bids.count_by_key_and_window(session_window(SIZE_S)).set_num_partitions(tasks)
    return counts.map(lambda each: (each[0].key, each[1], each[0].window.start_time, each[0].window.end_time))


def by_the_clock(events: Streamlet[Event], tasks: int) -> Streamlet[tuple[int, int]]:
    """q12: the bids of each bidder in windows of processing time: bidder and bids."""
    bids = of_kind(events, Bid).key_by(lambda bid: bid.bidder)
    counts = bids.count_by_key_and_window(tumbling_window(SIZE_S)).set_num_partitions(tasks)
    return counts.map(lambda each: (each[0].key, each[1]))


QUERIES: Mapping[str, Callable[[Streamlet[Event], int], Streamlet[Any]]] = {
    "q0": passed,
    "q1": in_euro,
    "q2": selection,
    "q3": local_items,
    "q4": category_prices,
    "q5": hot_items,
    "q6": seller_prices,
    "q7": highest_bids,
    "q8": new_sellers,
    "q11": sessions,
    "q12": by_the_clock,
}

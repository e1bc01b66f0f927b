"""Who bought this also bought: each day, what customers of the last three days bought together.

    heron run examples/pipelines/recommendations.py -- --days 5

A join of the purchases with themselves gives the pairs of things in one basket; a basket is what a customer buys on a
day. Windows of three days, one every day, count the customers of each pair.
"""

from __future__ import annotations

import argparse
import operator
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from heron_streamlet import Builder, Config, Items, KeyedWindow, Runner, Window, sliding_window, tumbling_window

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PERIOD = 3 * DAY  # what customers bought in this time counts
DELAY = timedelta(minutes=10)  # a purchase may arrive this much later than others
TOP = 3
MENUS = [["tea", "milk", "honey"], ["coffee", "milk", "sugar"], ["bread", "butter", "honey"], ["bread", "cheese"]]
THINGS = sorted({thing for menu in MENUS for thing in menu})


@dataclass(frozen=True, slots=True)
class Purchase:
    """A customer has bought a thing."""

    at: datetime
    customer: str
    thing: str


Pair = tuple[str, str]
Ranking = list[tuple[int, str]]  # the number of customers, negative so that the largest is first, and the other thing
Table = dict[str, Ranking]


def purchases(days: int, customers: int) -> Iterator[Purchase]:
    """Yield the purchases, always the same, a little out of order. Most things in a basket are of one menu."""
    chance = random.Random(3)
    for day in range(days):
        for number in range(customers):
            at = START + day * DAY + number * DAY / customers
            basket = {thing for thing in chance.choice(MENUS) if chance.random() < 0.8} | {chance.choice(THINGS)}
            for thing in sorted(basket):
                early = chance.random() * min(DELAY, number * DAY / customers)
                yield Purchase(at - early, f"customer{number}", thing)


def recommendations(days: int, customers: int) -> Builder:
    """Build the pipeline."""
    builder = Builder()
    happened = builder.new_source(Items(lambda: purchases(days, customers))).event_time(lambda each: each.at, lag=DELAY)
    bought = happened.key_by(lambda each: each.customer, lambda each: each.thing).set_num_partitions(2)
    together = bought.join(bought, tumbling_window(DAY), lambda thing, other: (thing, other)).set_num_partitions(2)
    pairs = together.filter(lambda result: result[1][0] != result[1][1])
    buyers = pairs.key_by(lambda result: result[1], lambda result: frozenset([result[0].key]))
    both = buyers.reduce_by_key_and_window(sliding_window(PERIOD, DAY), operator.or_).set_num_partitions(2)
    # The results of a window have the last moment of the window as event time. So each tumbling window of a day has the
    # results of one period.
    tables = both.map(ranked).reduce_by_window(tumbling_window(DAY), merged)
    tables.flat_map(lines).log()
    return builder


def ranked(result: tuple[KeyedWindow[Pair], frozenset[str]]) -> Table:
    """Return a table with the customers of one pair."""
    place, customers = result
    thing, other = place.key
    return {thing: [(-len(customers), other)]}


def merged(some: Table, others: Table) -> Table:
    """Return the best of both tables: most customers first, equal ones by name."""
    things = sorted(some.keys() | others.keys())
    return {thing: sorted(some.get(thing, []) + others.get(thing, []))[:TOP] for thing in things}


def lines(result: tuple[Window, Table]) -> Iterator[str]:
    """Yield the lines of a period."""
    window, table = result
    for thing, ranking in table.items():
        also = ", ".join(f"{other} ({-customers})" for customers, other in ranking)
        yield f"until {window.end:%m-%d}  who bought {thing} also bought {also}"


def main(arguments: Sequence[str]) -> None:
    """Parse the command line and submit the pipeline."""
    parser = argparse.ArgumentParser(prog="recommendations.py", description="shows what is bought together")
    parser.add_argument("--days", type=int, default=5, help="days of purchases (default: %(default)s)")
    parser.add_argument("--customers", type=int, default=100, help="customers (default: %(default)s)")
    options = parser.parse_args(arguments)
    for name in ("days", "customers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)} is below 1")
    Runner().run("recommendations", Config(), recommendations(options.days, options.customers))


if __name__ == "__main__":
    main(sys.argv[1:])

"""What the comparison with Flink expects of queries of Nexmark: each rule, on blocks that are small enough to see."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from bench.nexmark_answers import ANSWERS
from bench.nexmark_peers import check
from bench.query_runs import QueryRun
from bench.records import BenchError


class Person(NamedTuple):
    id: int
    time: int


class Auction(NamedTuple):
    id: int
    seller: int
    time: int


class Bid(NamedTuple):
    auction: int
    price: int
    time: int


BLOCK = [
    Person(1, 0),
    Person(2, 10),
    Auction(7, 2, 20),
    Auction(8, 2, 30),
    Auction(9, 3, 40),
    Bid(123, 100, 50),
    Bid(123, 50, 60),
    Bid(7, 199, 4999),
    Bid(7, 199, 5000),
    Bid(246, 30, 5001),
    Bid(246, 20, 9999),
]


@pytest.mark.parametrize(
    ("query", "rounds", "wanted"),
    [
        ("q0", 2, (22, 2 * 598)),
        ("q1", 1, (6, 89 + 44 + 177 + 177 + 26 + 17)),
        ("q2", 3, (12, 3 * 200)),
        # The first half of a block has auction 123 most, the second 246; both halves have all three twice.
        ("q5", 1, (1 + 1 + 3, 2 + 2 + 3 * 2)),
        ("q5", 2, (1 + 1 + 3 * 3, 2 + 2 + 3 * 3 * 2)),
        ("q7", 2, (4, 4 * 199)),
        ("q8", 2, (2, 2 * 2)),
    ],
)
def test_answer_counts_and_sums_the_results(query: str, rounds: int, wanted: tuple[int, int]) -> None:
    """Ties are all results; a seller is one, with two auctions too; windows of q5 overlap."""
    assert ANSWERS[query](BLOCK, rounds) == wanted


def test_wrong_results_of_a_system_are_refused() -> None:
    """A rate of wrong results means nothing. A system that does not sum up is compared by its number of results."""
    check("q1", QueryRun(1, 1.0, 6, None), (6, 5))
    check("q1", QueryRun(1, 1.0, 6, 5), (6, 5))
    for results, total in ((5, None), (6, 4)):
        with pytest.raises(BenchError, match=f"q1 on Flink: {results} results with the sum {total}, not 6 with 5"):
            check("q1 on Flink", QueryRun(1, 1.0, results, total), (6, 5))

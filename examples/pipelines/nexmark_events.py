"""The events of Nexmark: persons who register at an auction house, auctions, and bids, as a source of pipelines.

They are those of Apache Beam's generator in its default configuration with one generator: by default 10,000 events per
second of event time. An event depends on its number alone, so a source can be read again from any position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from heron.errors import UsageError
from heron_streamlet import Reader, Source, StageContext

__all__ = ["Auction", "Bid", "Event", "JavaRandom", "NexmarkEvents", "Person", "event", "last_auction", "last_person"]

BASE_MS = 1_436_918_400_000  # 2015-07-15T00:00:00Z
DELAY_US = 100
PER_GROUP, PERSONS, AUCTIONS = 50, 1, 3  # of 50 events one is a person and three are auctions; the others are bids
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT_AUCTION, HOT_SELLER, HOT_BIDDER = 2, 4, 4  # one in so many is not for the hot auction, seller, bidder
HOT_EVERY = 100
ACTIVE_PERSONS, OPEN_AUCTIONS, LEAD = 1000, 100, 10
OPEN_EVENTS = OPEN_AUCTIONS * PER_GROUP // AUCTIONS  # an auction is open for this many events, on average
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
          "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")  # fmt: skip
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")

MULTIPLIER, INCREMENT, SEED_MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1  # of java.util.Random


class Person(NamedTuple):
    """Someone has registered. Times are milliseconds since 1970, prices are cents."""

    id: int
    name: str
    email: str
    credit_card: str
    city: str
    state: str
    time: int
    extra: str


class Auction(NamedTuple):
    """An auction has begun."""

    id: int
    name: str
    description: str
    initial_bid: int
    reserve: int
    time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """Someone bids for something."""

    auction: int
    bidder: int
    price: int
    time: int
    extra: str


Event = Person | Auction | Bid


class JavaRandom:
    """The numbers of java.util.Random with this seed."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ MULTIPLIER) & SEED_MASK

    def bits(self, count: int) -> int:
        """Return a number of `count` bits, at most 32, without a sign."""
        self._seed = (self._seed * MULTIPLIER + INCREMENT) & SEED_MASK
        return self._seed >> (48 - count)

    def integer(self) -> int:
        """Return any number of 32 bits, with its sign."""
        number = self.bits(32)
        return number - (1 << 32) if number >> 31 else number

    def below(self, bound: int) -> int:
        """Return a number from 0, less than `bound`, which is from 1 to 2^31 - 1."""
        number = self.bits(31)
        if bound & (bound - 1) == 0:
            return (bound * number) >> 31
        while number - (rest := number % bound) + bound > 1 << 31:
            number = self.bits(31)
        return rest

    def fraction(self) -> float:
        """Return a number from 0, less than 1."""
        return float((self.bits(26) << 27) + self.bits(27)) * 2.0**-53


def last_person(number: int) -> int:
    """The index of the newest person at this event, from 0."""
    return number // PER_GROUP


def last_auction(number: int) -> int:
    """The index of the newest auction at this event, from 0; -1 before the first."""
    group, place = divmod(number, PER_GROUP)
    return group * AUCTIONS + min(place, AUCTIONS) - 1


def event(number: int, delay_us: int = DELAY_US) -> Event:
    """Return an event by its number, from 0, where an event happens every `delay_us` microseconds."""
    chance, place, time = JavaRandom(number), number % PER_GROUP, _time(number, delay_us)
    if place < PERSONS:
        return _person(number, time, chance)
    if place < PERSONS + AUCTIONS:
        return _auction(number, time, _time(number + OPEN_EVENTS, delay_us), chance)
    return _bid(number, time, chance)


def _time(number: int, delay_us: int) -> int:
    return BASE_MS + number * delay_us // 1000


def _person(number: int, time: int, chance: JavaRandom) -> Person:
    name = f"{_one_of(FIRST_NAMES, chance)} {_one_of(LAST_NAMES, chance)}"
    email = f"{_words(chance, 7)}@{_words(chance, 5)}.com"
    card = " ".join([f"{chance.below(10_000):04d}" for _ in range(4)])
    city, state = _one_of(CITIES, chance), _one_of(STATES, chance)
    extra = _extra(chance, 8 + len(name) + len(email) + len(card) + len(city) + len(state), PERSON_BYTES)
    return Person(last_person(number) + FIRST_ID, name, email, card, city, state, time, extra)


def _auction(number: int, time: int, mean_end: int, chance: JavaRandom) -> Auction:
    hot = chance.below(HOT_SELLER) > 0
    seller = last_person(number) // HOT_EVERY * HOT_EVERY if hot else _some_person(number, chance)
    category = FIRST_CATEGORY + chance.below(CATEGORIES)
    initial = _price(chance)
    expires = time + 1 + chance.below(max(2 * (mean_end - time), 1))
    name, description = _words(chance, 20), _words(chance, 100)
    reserve = initial + _price(chance)
    extra = _extra(chance, 48 + len(name) + len(description), AUCTION_BYTES)
    number_of_it = last_auction(number) + FIRST_ID
    return Auction(number_of_it, name, description, initial, reserve, time, expires, seller + FIRST_ID, category, extra)


def _bid(number: int, time: int, chance: JavaRandom) -> Bid:
    newest = last_auction(number)
    if chance.below(HOT_AUCTION) > 0:
        auction = newest // HOT_EVERY * HOT_EVERY
    else:
        oldest = max(newest - OPEN_AUCTIONS, 0)
        auction = oldest + chance.below(newest - oldest + 1 + LEAD)
    hot = chance.below(HOT_BIDDER) > 0
    bidder = last_person(number) // HOT_EVERY * HOT_EVERY + 1 if hot else _some_person(number, chance)
    price = _price(chance)
    return Bid(auction + FIRST_ID, bidder + FIRST_ID, price, time, _extra(chance, 32, BID_BYTES))


def _some_person(number: int, chance: JavaRandom) -> int:
    persons = last_person(number) + 1
    active = min(persons, ACTIVE_PERSONS)
    return persons - active + chance.below(active + LEAD)


def _one_of(names: Sequence[str], chance: JavaRandom) -> str:
    return names[chance.below(len(names))]


def _price(chance: JavaRandom) -> int:
    return math.floor(math.pow(10.0, chance.fraction() * 6.0) * 100.0 + 0.5)


def _words(chance: JavaRandom, most: int) -> str:
    length = 3 + chance.below(most - 3)
    letters = [" " if chance.below(13) == 0 else chr(97 + chance.below(26)) for _ in range(length)]
    return "".join(letters).strip(" ")


def _extra(chance: JavaRandom, size: int, average: int) -> str:
    if size > average:
        return ""
    delta = math.floor((average - size) * 0.2 + 0.5)
    length = average - size - delta + (chance.below(2 * delta) if delta else 0)
    letters: list[str] = []
    for _ in range(-(-length // 6)):
        number = chance.integer()
        step = -1 if number < 0 else 1  # Java's remainder has the sign of the number
        number = abs(number)
        for _ in range(6):
            number, digit = divmod(number, 26)
            letters.append(chr(97 + step * digit))
    return "".join(letters[:length])


class NexmarkEvents(Source[Event]):
    """The first events; a partition has every n-th of them, in order.

    Args:
        count: the number of events, at least 0.
        partitions: the number of partitions, at least 1.
        delay_us: microseconds of event time from one event to the next, at least 1.

    Raises:
        UsageError: when a number is out of its range.
    """

    def __init__(self, count: int, partitions: int = 1, delay_us: int = DELAY_US) -> None:
        if count < 0 or partitions < 1 or delay_us < 1:
            numbers = f"{count}, {partitions}, {delay_us}"
            msg = f"NexmarkEvents({numbers}): give at least 0 events, 1 partition and a delay of 1 microsecond"
            raise UsageError(msg)
        self.count, self.step, self.delay_us = count, partitions, delay_us

    def partitions(self, tasks: int) -> Sequence[str]:  # as many as the author said
        """`Source.partitions`."""
        return [str(number) for number in range(self.step)]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Event]:
        """`Source.open`. The position is the number of the next event."""
        return _EventReader(position if isinstance(position, int) else int(partition), self)


class _EventReader:
    def __init__(self, position: int, source: NexmarkEvents) -> None:
        self.position = position
        self._count, self._step, self._delay_us = source.count, source.step, source.delay_us

    def read(self, limit: int) -> Sequence[Event] | None:
        """`Reader.read`."""
        numbers = range(self.position, min(self.position + limit * self._step, self._count), self._step)
        self.position += len(numbers) * self._step
        return [event(number, self._delay_us) for number in numbers] or None

    def close(self) -> None:
        """`Reader.close`."""

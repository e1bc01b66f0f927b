"""The topics that were mentioned most, every five seconds, in windows of ten seconds of event time.

Run it:  heron run examples/pipelines/trends.py -- --seconds 60
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from heron_streamlet import Builder, Config, Items, KeyedWindow, Runner, Window, sliding_window, tumbling_window

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
PER_S = 200  # messages per second of event time
SIZE_S, SLIDE_S = 10, 5
DELAY_S = 2.0  # a message may arrive this much later than others
TOP = 3
TOPICS = [f"#topic{number}" for number in range(20)]


@dataclass(frozen=True, slots=True)
class Message:
    """A message with its time in seconds since 1970."""

    time: float
    text: str


def messages(seconds: int) -> Iterator[Message]:
    """Yield the messages, always the same, a little out of order. The most popular topic changes over time."""
    chance = random.Random(7)
    for number in range(seconds * PER_S):
        favourite = TOPICS[number * len(TOPICS) // (seconds * PER_S)]
        topics = [favourite if chance.random() < 0.3 else chance.choice(TOPICS) for _ in range(chance.randrange(3))]
        yield Message(START + number / PER_S - chance.random() * DELAY_S / 2, f"message {number} {' '.join(topics)}")


def topics_of(message: Message) -> list[str]:
    """Return the topics of a message."""
    return [word for word in message.text.split() if word.startswith("#")]


def most(some: list[tuple[int, str]], others: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the topics with the most mentions of both lists."""
    return heapq.nlargest(TOP, some + others)


def line(result: tuple[Window, list[tuple[int, str]]]) -> str:
    """Return a line of the table: the end of the window, and its topics."""
    window, top = result
    return f"{window.end:%H:%M:%S}  " + ", ".join(f"{topic} {count}" for count, topic in sorted(top, reverse=True))


def trends(seconds: int) -> Builder:
    """Build the pipeline."""
    builder = Builder()
    timed = builder.new_source(Items(lambda: messages(seconds))).event_time(lambda message: message.time, lag=DELAY_S)
    mentions = timed.flat_map(topics_of).key_by(lambda topic: topic)
    counts = mentions.count_by_key_and_window(sliding_window(SIZE_S, SLIDE_S)).set_num_partitions(2)
    # The results of a window have the last moment of the window as event time. So each tumbling window of the length of
    # a slide has the results of one sliding window.
    top = counts.map(listed).reduce_by_window(tumbling_window(SLIDE_S), most)
    top.map(line).log()
    return builder


def listed(result: tuple[KeyedWindow[str], int]) -> list[tuple[int, str]]:
    """Return the count of a topic as a list with one entry."""
    place, count = result
    return [(count, place.key)]


def main(arguments: Sequence[str]) -> None:
    """Parse the command line and submit the pipeline."""
    parser = argparse.ArgumentParser(prog="trends.py", description="shows the most popular topics")
    parser.add_argument("--seconds", type=int, default=60, help="seconds of event time (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.seconds < 1:
        parser.error(f"--seconds {options.seconds} is below 1")
    Runner().run("pipeline_trends", Config(), trends(options.seconds))


if __name__ == "__main__":
    main(sys.argv[1:])

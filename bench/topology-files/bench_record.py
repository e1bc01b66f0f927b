"""The records that the components of a bench write, and the file that ends them. Shared by all bench topologies.

The measurement must not include its cost: spouts check once per block of tuples, bolts once per tick.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from heron.api import TopologyContext, api_constants

__all__ = ["TICK_S", "CountLog", "Latencies", "config_of", "options", "repeated"]

T = TypeVar("T")

TICK_S = 0.1
STOP_FILE = "stop"


def options(arguments: Sequence[str], **defaults: int) -> Namespace:
    """Parse the options of a bench topology: `--folder`, `--rounds`, `--atleast`, a number for each of `defaults`."""
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the records and of the stop file")
    parser.add_argument(
        "--rounds", type=int, default=0, help="blocks that a spout sends; 0: until the stop file exists"
    )
    parser.add_argument("--atleast", action="store_true", help="at-least-once delivery: ids, anchors, acks")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args(arguments)


def config_of(chosen: Namespace, **more: object) -> dict[str, object]:
    """Return the configuration of a bench topology."""
    modes = api_constants.TopologyReliabilityMode
    mode = modes.ATLEAST_ONCE if chosen.atleast else modes.ATMOST_ONCE
    common = {"folder": chosen.folder, "rounds": chosen.rounds}
    return {api_constants.TOPOLOGY_RELIABILITY_MODE: mode.value, **common, **more}


class CountLog:
    """The tuple counts of a task over time: lines of ``monotonic seconds, count``."""

    def __init__(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self._stem = Path(config["folder"]) / f"{context.get_component_id()}-{context.get_task_index()}"
        self._next_s = 0.0

    def note(self, count: int) -> None:
        """Write a line, at most once per tick."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + TICK_S / 2
            with self._stem.with_suffix(".log").open("a", encoding="utf-8") as file:
                file.write(f"{now_s} {count}\n")

    def conclude(self, result: object) -> None:
        """Write the final result of a task: its counts, or the number of blocks that it sent."""
        self._stem.with_suffix(".json").write_text(json.dumps(result), encoding="utf-8")


class Latencies:
    """The due time of each tuple and its latency, in order of arrival."""

    def __init__(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self._file = Path(config["folder"]) / f"{context.get_component_id()}-{context.get_task_index()}.latency"
        self.pairs = array("d")

    def conclude(self) -> None:
        """Write the pairs to the file."""
        with self._file.open("wb") as file:
            self.pairs.tofile(file)


def repeated(block: Sequence[T], config: Mapping[str, Any], context: TopologyContext) -> Iterator[T]:
    """Repeat the items of the block until the stop file exists or the rounds are over."""
    return chain.from_iterable(_blocks(block, config, CountLog(config, context)))


def _blocks(block: Sequence[T], config: Mapping[str, Any], log: CountLog) -> Iterator[Sequence[T]]:
    stop, rounds, done = Path(config["folder"]) / STOP_FILE, config["rounds"], 0
    while done < rounds if rounds else not stop.exists():
        log.note(done * len(block))
        yield block
        done += 1
    log.conclude(done)

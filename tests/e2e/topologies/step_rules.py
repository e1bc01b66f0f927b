"""A pipeline of which one record or window fails in each of four steps; `--rule` is the rule of all of them.

With ``--stops 1`` the topology stops at failures without a rule. With ``--wait 1`` a step waits for a file ``go``.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from recording import arguments

from heron_streamlet import Builder, Config, Items, Runner, tumbling_window


def divided(number: int, pole: int) -> int:
    """Return a number that is not there at the pole."""
    return 60 // (number - pole)


def largest(one: int, other: int) -> int:
    """Return the larger number; fails for 9."""
    return max(one, other) if divided(max(one, other), 9) else 0


def refuse(number: int) -> None:
    """Fail for 8, and print the others."""
    divided(number, 8)
    print(f"consumed {number}")


def wait(out: Path, number: int) -> int:
    """Return the number when the file is there."""
    while not (out / "go").exists():
        time.sleep(0.02)  # so that the run goes on meanwhile
    return number


if __name__ == "__main__":
    options = arguments(rule="skip", stops=0, wait=0)
    rule = options.rule
    builder = Builder()
    numbers = builder.new_source(Items(range(1, 11))).set_name("numbers")
    numbers.map(lambda number: divided(number, 2)).set_name("here").on_error(rule).map(lambda n: f"here {n}").log()
    moved = numbers.repartition(2).set_name("moved")
    moved.map(lambda number: divided(number, 3)).set_name("there").on_error(rule).map(lambda n: f"there {n}").log()
    moved.consume(refuse, on_error=rule)
    pairs = numbers.event_time(lambda number: number % 10).key_by(lambda number: "odd" if number % 2 else "even")
    windows = pairs.reduce_by_key_and_window(tumbling_window(10), largest).set_name("windows").on_error(rule)
    windows.map(lambda result: f"window {result[0].key} {result[1]}").log()
    if options.wait:
        numbers.repartition(1).set_name("waiting").map(partial(wait, Path(options.out))).map(str).consume(len)
    Runner().run("step_rules", Config({"topology.on.error": "stop"} if options.stops else {}), builder)

"""Tells the story of `auto_scale.py`: the load triples, the health manager changes the plan, the rate follows.

Run it:  python examples/demo/watch_auto_scale.py
It takes 90 seconds, submits the topology to the profile `local`, and kills it at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron_cli.client import Client, connect

NAME = "auto_scale"
TOPOLOGY = Path(__file__).parents[1] / "auto_scale.py"
HERON = Path(sys.executable).with_name("heron")
BEFORE, AFTER = 30, 90  # lines per second
TRIPLES_AT_S, ENDS_AT_S, EVERY_S = 30.0, 90.0, 3.0
SETTINGS = {
    "health.mode": "act",
    "health.policies": "[{driver: ds2, period_s: 2, look_back_s: 5}]",
    "health.cool_down_s": "10",
    "health.least_confidence": "0.3",  # a bolt that waits might also have a slow service
}


@contextmanager
def submitted(client: Client, load: Path) -> Iterator[None]:
    """Run the topology for this block."""
    client.submit(str(TOPOLOGY), ("--load", str(load)))
    try:
        yield
    finally:
        client.kill(NAME)


def say(at_s: float, text: str) -> None:
    """Print a line with its second."""
    print(f"{at_s:4.0f} s  {text}", flush=True)


def show_rates(client: Client, at_s: float, offered: int) -> None:
    """Print what is offered and what is done."""
    components = {each.name: each for each in client.status(NAME).status.components}
    found = components.get("translate")
    if found is not None:
        tasks = f"{found.parallelism} task{'s' if found.parallelism > 1 else ''}"
        say(at_s, f"{offered} lines/s are offered, {found.rate_per_s:.0f} lines/s are translated by {tasks}")


def show_decisions(at_s: float, told: dict[int, str]) -> None:
    """Print each decision to act when it is new, and when its state changes."""
    words = [str(HERON), "health", NAME, "history", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    for each in json.loads(done.stdout)["decisions"] if done.returncode == 0 else ():
        number, state, action = each["number"], each["state"], each["action"]
        if not each["base"] or told.get(number) == state:
            continue
        if number not in told:
            say(at_s, f"the health manager decides: {action['text']}")
            say(at_s, f"  because {each['diagnosis']['evidence'][0]}")
        if state != "started":
            say(at_s, f"decision {number} is {state}")
        told[number] = state


def main() -> None:
    """Tell the story."""
    with tempfile.TemporaryDirectory(prefix="auto-scale-") as folder, connect(overrides=SETTINGS) as client:
        load = Path(folder, "load.txt")
        load.write_text(str(BEFORE), encoding="utf-8")
        say(0.0, f"a topology begins: each of its {BEFORE} lines per second takes 20 ms, so one task is enough")
        with submitted(client, load):
            start_s, offered, told = time.monotonic(), BEFORE, dict[int, str]()
            while (at_s := time.monotonic() - start_s) < ENDS_AT_S:
                if offered == BEFORE and at_s >= TRIPLES_AT_S:
                    offered = AFTER
                    load.write_text(str(AFTER), encoding="utf-8")
                    say(at_s, f"the load triples: {AFTER} lines per second")
                show_rates(client, at_s, offered)
                show_decisions(at_s, told)
                time.sleep(EVERY_S)
        say(ENDS_AT_S, "the topology is killed; nobody has typed a command meanwhile")


if __name__ == "__main__":
    main()

"""Clicks and views, joined by page in windows of five seconds. A healthy load whose work comes in waves."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple

_PAGES = 5_000
_WINDOW_S = 5.0
_LOOK_UP_S = 0.01


class Visits(Spout):
    """Emits 60 visits of random pages a second, at random moments."""

    outputs = ("page",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first visit is due now."""
        self.random = random.Random(context.get_task_id())
        self.due_s = time.monotonic()

    def next_tuple(self) -> None:
        """Emit the visit that is due."""
        if time.monotonic() >= self.due_s:
            self.due_s += self.random.expovariate(60.0)
            self.emit([f"page-{self.random.randrange(_PAGES)}"])

    def backlog(self) -> float:
        """Return about how many visits are due."""
        return max(0.0, time.monotonic() - self.due_s) * 60.0


class Join(Bolt):
    """Looks each page up, and joins both streams at the end of a window."""

    outputs = ("page", "clicks", "views")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first window begins."""
        self.counts: dict[str, Counter[str]] = {"clicks": Counter(), "views": Counter()}
        self.ends_s = time.monotonic() + _WINDOW_S

    def process(self, tup: Tuple) -> None:
        """Count a visit; emit the pages of a window that is over."""
        time.sleep(_LOOK_UP_S)
        self.counts[tup.component][tup.values[0]] += 1
        if time.monotonic() >= self.ends_s:
            self.ends_s += _WINDOW_S
            clicks, views = self.counts["clicks"], self.counts["views"]
            for page in clicks.keys() & views.keys():
                self.emit([page, clicks[page], views[page]])
            clicks.clear()
            views.clear()


class Report(Bolt):
    """Keeps nothing."""

    def process(self, tup: Tuple) -> None:
        """Take a joined page."""


def main() -> None:
    """Submit the topology."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", help="the folder of the switches, of which it has none")
    parser.parse_args()
    builder = TopologyBuilder("joined")
    sources = [builder.add_spout(name, Visits, par=1) for name in ("clicks", "views")]
    by_page = dict.fromkeys(sources, Grouping.fields("page"))
    join = builder.add_bolt("join", Join, par=2, inputs=by_page)
    builder.add_bolt("report", Report, par=1, inputs={join: Grouping.SHUFFLE})
    builder.set_config({"topology.stmgrs": 2})
    builder.build_and_submit()


main()

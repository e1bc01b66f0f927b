"""Logins that no bolt accepts, until there is a file ``stop`` among the results; a file ``other`` changes the line."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class LoginSpout(Spout):
    """Emits logins now and then."""

    outputs = ("name", "password")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Makes the login; its texts are in no line of this file, which tracebacks show."""
        self.out = Path(config["out"])
        self.rounds = itertools.count()
        self.name, self.password = "-".join(("ada", "lovelace")), "-".join(("hunter2", "of", "ada"))

    def next_tuple(self) -> None:
        """Emits a login, one that cannot be sent, and one by mistake: with too many values, or as an argument."""
        if (self.out / "stop").exists():
            self.end()
            return
        self.emit([self.name, self.password])
        self.emit([self.name, (each for each in self.password)])
        time.sleep(0.05)
        match next(self.rounds) % 3:
            case 0:
                self.emit([self.name, self.password, self.name])
            case 1:
                self.emit([self.name, self.password], stream=self.password)
            case _:
                self.report_error(self.password)  # type: ignore[arg-type]  # the mistake


class RefusingBolt(Bolt):
    """Fails each login."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Remembers the folder of results."""
        self.out = Path(config["out"])

    def process(self, tup: Tuple) -> None:
        """Fails at one of two lines."""
        first, other = "the first line", "the other line"
        if (self.out / "other").exists():
            raise LookupError(other)
        raise LookupError(first)


if __name__ == "__main__":
    options = arguments(name="logins")
    builder = TopologyBuilder(options.name)
    builder.set_config({"out": options.out})
    logins = builder.add_spout("logins", LoginSpout, par=1)
    builder.add_bolt("refuse", RefusingBolt, par=1, inputs={logins: Grouping.SHUFFLE})
    builder.build_and_submit()

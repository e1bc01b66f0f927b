"""Bolts that block at their first tuple, each in another way, until their processes are killed."""

from __future__ import annotations

import ctypes
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

WAYS = ("sleep", "wait", "read", "spin", "hold")


class OneSpout(Spout):
    """Emits one tuple, and then waits for the end of the topology."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has emitted nothing."""
        self.emitted = False

    def next_tuple(self) -> None:
        """Emits the tuple."""
        if not self.emitted:
            self.emitted = True
            self.emit([1])


class BlockingBolt(Bolt):
    """Blocks in the way that its configuration names."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepares what the bolt waits for."""
        self.way, self.out = config["way"], Path(config["out"])
        self.lock = threading.Lock()
        self.lock.acquire()
        self.ends = socket.socketpair()

    def process(self, tup: Tuple) -> None:
        """Blocks."""
        (self.out / self.way).touch()
        getattr(self, self.way)()

    def sleep(self) -> None:
        """Sleeps."""
        time.sleep(3600)

    def wait(self) -> None:
        """Waits for a lock that nobody releases."""
        self.lock.acquire()

    def read(self) -> None:
        """Waits for data that nobody sends."""
        self.ends[0].recv(1)

    def spin(self) -> None:
        """Computes."""
        while True:
            pass

    def hold(self) -> None:
        """Sleeps in native code that keeps the interpreter lock."""
        ctypes.PyDLL(None).sleep(3600)


if __name__ == "__main__":
    options = arguments(stmgrs=2)
    builder = TopologyBuilder("blocked")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: options.stmgrs, "out": options.out})
    one = builder.add_spout("one", OneSpout, par=1)
    for way in WAYS:
        builder.add_bolt(way, BlockingBolt, par=1, inputs={one: Grouping.ALL}, config={"way": way})
    builder.build_and_submit()

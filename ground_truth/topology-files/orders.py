"""Orders, a bolt that enriches each of them, and a bolt that stores them. The load is known, and all faults are off.

Each order costs a task of ``enrich`` a time in which it waits for a service, and some processor time. By default a
healthy run has the right number of tasks, and uses a few percent of one processor.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import pdb
import random
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

from switches import Switches

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, TopologyReliabilityMode, Tuple

_CUSTOMERS = 10_000
_LEAK_BYTES = 300_000
_KEPT_OBJECTS = 300_000
_STOP_EVERY, _STOP_S = 50, 3.0  # tuples between two stops of the debugger, and how long a person looks


def work(seconds: float) -> None:
    """Use this much processor time."""
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


class Orders(Spout):
    """Emits at a known pace, in bursts of `burst_s` seconds each."""

    outputs = ("customer", "payload")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first order is due now."""
        self.switches = Switches(config["folder"])
        self.rate, self.burst_s = float(config["rate"]), float(config["burst"])
        self.payload = "x" * int(config["payload"])
        self.random = random.Random(context.get_task_id())
        self.due = 0.0  # orders
        self.burst = 0.0  # orders that a burst has not let out yet
        self.number = 0
        self.before_s = self.burst_at_s = time.monotonic()

    def next_tuple(self) -> None:
        """Emit an order that is due."""
        now_s = time.monotonic()
        (factor,) = self.switches.numbers("load") or [1.0]
        self.burst += (now_s - self.before_s) * self.rate * factor
        self.before_s = now_s
        if now_s >= self.burst_at_s:
            self.burst_at_s = now_s + self.burst_s * self.random.uniform(0.5, 1.5)
            self.due, self.burst = self.due + self.burst, 0.0
        if self.due >= 1.0 and self.switches.text("stall") is None:
            self.due -= 1.0
            self.number += 1
            self.emit([self.customer(), self.payload], tup_id=self.number)

    def customer(self) -> str:
        """Return the customer of the next order: any of them, or often one of a few."""
        hot = (self.switches.text("hot") or "").split()
        if hot and self.random.random() < float(hot[0]):
            return self.random.choice(hot[1:])
        return f"customer-{self.random.randrange(_CUSTOMERS)}"

    def backlog(self) -> float:
        """Return the orders that are due and not emitted."""
        return self.due


class Enrich(Bolt):
    """Waits for a service for each order; one task may do so more slowly than the others, or do worse."""

    outputs = ("customer", "payload")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Nothing is kept yet."""
        self.switches = Switches(config["folder"])
        self.call_s, self.work_s = float(config["call"]), float(config["work"])
        self.task = context.get_task_id()
        self.leaked: list[bytes] = []
        self.kept: list[list[int]] = []
        self.debugger = pdb.Pdb(stdin=_Person(), stdout=io.StringIO(), nosigint=True, readrc=False)
        self.processed = 0

    def process(self, tup: Tuple) -> None:
        """Call the service, and emit the order."""
        factor, *of_tasks = self.switches.numbers("slow") or [1.0]
        slower = factor if not of_tasks or self.task in of_tasks else 1.0
        times, *keys = (self.switches.text("slow-key") or "1").split()
        if tup.values[0] in keys:
            slower = float(times)
        time.sleep(self.call_s * slower)
        work(self.work_s * slower)
        self.misbehave()
        self.emit(list(tup.values), anchors=[tup])
        self.ack(tup)

    def misbehave(self) -> None:
        """Do what the switches say of this task."""
        if self.task in self.switches.numbers("leak"):
            self.leaked.append(os.urandom(_LEAK_BYTES))
        if self.task in self.switches.numbers("garbage"):
            self.kept = self.kept or [[number] for number in range(_KEPT_OBJECTS)]
            gc.collect()
        if self.task in self.switches.numbers("crash"):
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory is short
        if self.task in self.switches.numbers("hang"):
            threading.Event().wait()
        self.processed += 1
        if self.task in self.switches.numbers("debugger") and self.processed % _STOP_EVERY == 0:
            self.debugger.set_trace()


class _Person(io.StringIO):
    """Looks at each stop of a debugger for some seconds, and continues."""

    def readline(self, _size: int | None = -1, /) -> str:  # type: ignore[override]
        """Return the command, late."""
        time.sleep(_STOP_S)
        return "continue\n"


class Store(Bolt):
    """Stores each order, which takes a millisecond."""

    def process(self, tup: Tuple) -> None:
        """Wait for the disk."""
        time.sleep(0.001)
        self.ack(tup)


def main() -> None:
    """Submit the topology."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True, help="the folder of the switches")
    parser.add_argument("--rate", type=float, default=144.0, help="orders/s")
    parser.add_argument("--burst", type=float, default=0.0, help="seconds between two bursts")
    parser.add_argument("--payload", type=int, default=10, help="bytes of an order")
    parser.add_argument("--enrich", type=int, default=4, help="tasks of enrich")
    parser.add_argument("--call", type=float, default=0.02, help="seconds that a task waits for the service")
    parser.add_argument("--work", type=float, default=0.0, help="seconds of processor time")
    parser.add_argument("--shuffle", action="store_true", help="orders without keys")
    parser.add_argument("--acks", action="store_true", help="at-least-once delivery")
    options = parser.parse_args()
    config = vars(options)
    builder = TopologyBuilder("orders")
    orders = builder.add_spout("orders", Orders, par=1, config=config)
    grouping = Grouping.SHUFFLE if options.shuffle else Grouping.fields("customer")
    enrich = builder.add_bolt("enrich", Enrich, par=options.enrich, inputs={orders: grouping}, config=config)
    builder.add_bolt("store", Store, par=1, inputs={enrich: Grouping.SHUFFLE})
    delivery = TopologyReliabilityMode.ATLEAST_ONCE if options.acks else TopologyReliabilityMode.ATMOST_ONCE
    builder.set_config({"topology.stmgrs": 2, "topology.reliability.mode": delivery})
    builder.build_and_submit()


main()

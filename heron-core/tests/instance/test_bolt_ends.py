"""A bolt whose calls are queued when its input ends: they are executed before the end is sent."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.bolt import Bolt
from heron.api.context import TopologyContext
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.instance.bolt_runner import BoltRunner
from heron.ipc.frames.frame import OptionTag, option
from heron.kernel.settings import EngineSettings
from parts import end_marker, tuple_segment
from parts.tracked_rest import BOLT, SPOUT, Rest, first_time, sent_end

EXPORT_S = EngineSettings().metrics_export_s


class Queues(Bolt):
    """Emits and acks with the thread-safe collector, in `process` and in a thread that `finish` joins."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.collector = context.threadsafe_collector()

    def process(self, tup: Tuple) -> None:
        self.collector.emit([tup.values[0]], anchors=[tup])
        self.collector.ack(tup)

    def finish(self) -> None:
        thread = threading.Thread(target=self.collector.emit, args=(["finish"],))
        thread.start()
        thread.join()


def test_queued_calls_are_executed_before_the_end() -> None:
    """The last tuple and the END marker may come in one frame; what is emitted behind END is lost."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    options = option(OptionTag.BATCH_KEY, (17).to_bytes(8, "little"))
    options += option(OptionTag.ROOT_BASE, ((SPOUT << 48) | 10).to_bytes(8, "little"))
    rest.put(tuple_segment([("a",), ("b",)], (BOLT,), source_task=SPOUT, options=options), end_marker((BOLT,), SPOUT))
    rest.run(BoltRunner, Queues)
    emitted = [each for each in rest.events if isinstance(each, str)]
    assert emitted == ["a", "b", "finish", "END"]


def test_a_bolt_that_has_ended_sleeps_although_a_tick_was_due() -> None:
    """It calls no tick any more. Only its metrics wake it, so it has few rounds until they are sent."""
    rounds: list[float] = []  # when each began, from the end on

    def metrics_sent(rest: Rest) -> bool:
        if rounds or sent_end(rest):
            rounds.append(monotonic_s())
        return bool(rounds) and rounds[-1] > rounds[0] + EXPORT_S

    rest = Rest("bolt", first_time("ack"), metrics_sent, config={TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.01})
    rest.put(end_marker((BOLT,), SPOUT))
    rest.run(BoltRunner, Queues)
    assert len(rounds) < 20

"""The rest of a topology at least once, around one task that runs on its task thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heron.api.definition import GroupingKind
from heron.api.tuple import Tuple
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.instance.acks.tracked_batch import tracked_batch
from heron.instance.bolt_runner import BoltRunner
from heron.instance.codec.plain import PLAIN
from heron.instance.codec.serializers import PICKLE
from heron.instance.gateway.gateway import Gateway
from heron.instance.gateway.session import settled_roots
from heron.instance.input.bolt_acks import AckTracker
from heron.instance.runner import ComponentRunner
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    FrameKind,
    OptionTag,
    SegmentHead,
    SegmentKind,
    frame_header,
    option,
    parse_segment,
)
from heron.ipc.frames.tracking_arrays import parse_ack, parse_fail
from heron.kernel.settings import EngineSettings
from heron.stmgr.ack_outcomes import AckOutcomes
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, decoded_rows, instance_spec, tuple_segment

__all__ = ["BOLT", "SPOUT", "Around", "Decide", "Rest", "first_time", "sent_end", "settled", "tracked"]

SPOUT, BOLT, SINK = 1, 2, 3
DEADLINE_S = 20.0
NOTHING: Mapping[str, object] = {}

Decide = Callable[[object], str]
"""What happens to a tuple downstream, by its value: ``ack``, ``fail`` or ``keep``."""


class Around(Signals):
    """Runs the rest of the topology once per round of the task, and stops the task at the end."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    @property
    def stop_requested(self) -> bool:
        return self._rest.play()


class Rest:
    """The rest of the topology: reads the task's output, settles tuples by `decide`, and returns the outcomes."""

    def __init__(
        self,
        component: str,
        decide: Decide,
        until: Callable[[Rest], bool],
        streams: Sequence[str] = ("default",),
        config: Mapping[str, object] = NOTHING,
    ) -> None:
        definition = topology(
            spout("spout", *[stream("v", name=name) for name in streams]),
            bolt(
                "bolt",
                *[subscription("spout", GroupingKind.ALL, stream=name) for name in streams],
                outputs=(stream("v"),),
            ),
            bolt("sink", subscription("bolt", GroupingKind.ALL)),
            config={"topology.reliability.mode": "ATLEAST_ONCE", **config},
        )
        plan = physical_plan(definition, {"spout": (SPOUT,), "bolt": (BOLT,), "sink": (SINK,)})
        spec = instance_spec(component, SPOUT if component == "spout" else BOLT)
        self.gateway = Gateway(spec, EngineSettings())
        self.task = Task(spec, EngineSettings(), self.gateway, plan)
        self.decide, self.until = decide, until
        self.ledgers = AckOutcomes()
        self.downstream = AckTracker(self)
        self.most_in_flight = 0
        self.answers: list[pb.TaskAnswer] = []
        self.events: list[object] = []  # values that were sent, ("acked", …), ("failed", …) of a bolt, "END"
        self._deadline_s = monotonic_s() + DEADLINE_S

    def put_acks(self, segments: Sequence[bytes]) -> None:
        """`heron.instance.input.bolt_acks.AckOutput` of the tasks downstream."""
        for data in segments:
            self.ledgers.take(data, 0, parse_segment(data, 0).destinations[0], 0.0)

    def play(self) -> bool:
        """Runs one round; returns whether the task must stop."""
        assert monotonic_s() < self._deadline_s, self.events
        out = self.gateway.data_out
        while out.acks:
            for data in out.acks.popleft():
                self._read(data)
        while out.items:
            item = out.items.popleft()
            if isinstance(item, Envelope):
                self.answers += [item.task_answer] if item.HasField("task_answer") else []
            else:
                out.sent(item[1])
                for data in item[0]:
                    self._read(data)
        self.most_in_flight = max(self.most_in_flight, self.ledgers.in_flight())
        self.downstream.flush()
        for segments in self.ledgers.take_settled().values():
            frame = frame_header(FrameKind.ACK, 1, 1) + b"".join(segments)
            self.gateway.data_in.put(settled_roots(frame))
        return self.until(self)

    def run(self, runner: type[SpoutRunner] | type[BoltRunner], component: type) -> ComponentRunner:
        """Runs the task until it must stop."""
        made = runner(self.task, Around(self), component)
        made.run(ended=False)
        return made

    def put(self, *segments: bytes) -> None:
        """Sends the task a frame."""
        frame = data_frame(*segments)
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)

    def _read(self, data: bytes) -> None:
        head = parse_segment(data, 0)
        if head.kind == SegmentKind.MARKER:
            self.events.append("END")
        elif head.kind == SegmentKind.TUPLES:
            self._take_tuples(data, head)
        elif head.destinations == (SPOUT,) and self.task.spec.task_id == BOLT:
            ack = head.kind == SegmentKind.ACK
            found = parse_ack(data, head) if ack else None
            if found is None:
                self.events.append(("failed", *parse_fail(data, head)))
            elif found.roots is None:
                self.events.append(("acked", *range(found.base, found.base + head.rows)))
            else:
                self.events.append(("acked", *found.roots.tolist()))
        else:
            self.ledgers.take(data, 0, head.destinations[0], 0.0)

    def _take_tuples(self, data: bytes, head: SegmentHead) -> None:
        values = [row[0] for row in decoded_rows(data)]
        self.events += values
        batch = tracked_batch(head, head.destinations[0])
        if batch is None:
            return
        tuples = [Tuple(batch, (value,), place) for place, value in enumerate(values)]
        ways = [self.decide(value) for value in values]
        self.downstream.settle(
            [tup for tup, way in zip(tuples, ways, strict=True) if way == "ack"],
            [tup for tup, way in zip(tuples, ways, strict=True) if way == "fail"],
            [],
        )


def first_time(how: str, *values: object) -> Decide:
    """These values fail, or are kept, at their first arrival; everything else is acked."""
    left = list(values)

    def decide(value: object) -> str:
        if value in left:
            left.remove(value)
            return how
        return "ack"

    return decide


def tracked(base: int, *values: object, plain: bool = True) -> bytes:
    """A batch of the spout whose rows are its roots from `base` on."""
    options = option(OptionTag.BATCH_KEY, (base + 7).to_bytes(8, "little"))
    options += option(OptionTag.ROOT_BASE, ((SPOUT << 48) | base).to_bytes(8, "little"))
    rows, serializer = [(value,) for value in values], PLAIN if plain else PICKLE
    return tuple_segment(rows, (BOLT,), source_task=SPOUT, options=options, serializer=serializer)


def settled(rest: Rest, how: str = "acked") -> list[int]:
    """The roots of tuples that a bolt has settled so."""
    return sorted(root for each in rest.events if isinstance(each, tuple) and each[0] == how for root in each[1:])


def sent_end(rest: Rest) -> bool:
    return "END" in rest.events

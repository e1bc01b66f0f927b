"""A program: a whole topology as plain data, which one topology file interprets."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

__all__ = ["BoltProgram", "Call", "Emit", "Input", "Program", "SpoutProgram", "Update"]


@dataclass(frozen=True, slots=True)
class Emit:
    """One emit of a call.

    Attributes:
        kind: the kind of its value, a key of `heron_testing.random_topologies.values.KINDS` or of the caller's kinds.
        size: the length of the value, for kinds that have one: bytes or items.
        key: the number of its key.
        stream: the name of the stream.
        bad: ``unpicklable`` and ``undecodable`` spoil the value of its first attempt; ``too large`` makes a tuple above
            `Program.tuple_max_bytes` of it. Empty: the value is good.
    """

    kind: str = "int"
    size: int = 0
    key: int = 0
    stream: str = "default"
    bad: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of `next_tuple` does.

    Attributes:
        emits: its emits, in their order; none for a call that emits nothing.
        form: ``rows``; ``batch`` for one batch of columns for each stream, which is one root; ``ids`` for the same with
            an id for each row.
        raises: whether it raises after its emits.
        lasts_s: how long it takes, in pauses before its emits; only on processes, with updates.
    """

    emits: tuple[Emit, ...] = ()
    form: str = "rows"
    raises: bool = False
    lasts_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SpoutProgram:
    """A spout.

    Attributes:
        name: the name of the component.
        tasks: its parallelism.
        calls: the calls of each task.
        end: where a task calls `end`: ``before`` or ``after`` the emits of its last call, in a ``later`` call, in
            ``initialize`` (its calls are left out), by the thread-safe collector (``thread``), in the `ack` or `fail`
            of its last open root (``ack``), or, only with updates, in ``deactivate``.
        ids: whether tuples have ids.
        replay: what `fail` does, at least once: ``queue`` the root for a later call, emit it ``at once``, or ``never``.
    """

    name: str
    tasks: int = 1
    calls: tuple[Call, ...] = ()
    end: str = "later"
    ids: bool = True
    replay: str = "queue"

    @property
    def columns(self) -> bool:
        """Whether a call emits columns."""
        return any(call.form != "rows" for call in self.calls)


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a bolt: a stream and its grouping.

    `grouping` is the name of a grouping of `heron.api.Grouping`, or ``custom MODULE:CLASS`` for a custom one, whose
    class takes no arguments.
    """

    component: str
    stream: str = "default"
    grouping: str = "SHUFFLE"


@dataclass(frozen=True, slots=True)
class BoltProgram:
    """A bolt. It emits `fan_out` tuples for each tuple that it receives.

    Attributes:
        name: the name of the component.
        inputs: its inputs, each with another stream.
        tasks: its parallelism.
        fan_out: the tuples that it emits for each received tuple.
        streams: the streams that these tuples go to, in turn.
        receives: ``rows`` or ``columns``.
        emits: ``rows`` or ``columns``.
        anchored: whether they are anchored to the received tuple.
        moment: when it emits and acks: in ``process``, at the next ``tick``, in ``finish`` (acked in `process`), or
            with the thread-safe collector (``queued``).
        fails: percent of the tuples whose first attempt it fails, after the emits.
        raises: percent of the tuples whose first attempt makes `process` raise.
        raises_first: whether it raises before its emits.
        acks_twice: whether it acks each tuple twice.
    """

    name: str
    inputs: tuple[Input, ...]
    tasks: int = 1
    fan_out: int = 1
    streams: tuple[str, ...] = ("default",)
    receives: str = "rows"
    emits: str = "rows"
    anchored: bool = True
    moment: str = "process"
    fails: int = 0
    raises: int = 0
    raises_first: bool = False
    acks_twice: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """A change of the topology while it runs; only on processes.

    Attributes:
        tasks: the new parallelism by component.
        containers: the new number of containers, or 0.
        rebalance: the component whose key groups move, or empty.
        pauses: whether the topology is deactivated and activated again.
    """

    tasks: dict[str, int] = field(default_factory=dict)
    containers: int = 0
    rebalance: str = ""
    pauses: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A whole topology.

    Attributes:
        seed: the number that it was drawn from.
        mode: the reliability mode.
        spouts: its spouts.
        bolts: its bolts; the inputs of each are spouts, or bolts before it.
        containers: the number of containers.
        serializer: the value of ``topology.serializer``.
        pending: the value of ``topology.max.spout.pending``.
        batch_rows: the tuples of a batch, at most.
        batch_bytes: the bytes of a batch.
        tuple_max_bytes: the limit of a tuple, in bytes.
        updates: changes while it runs. With any, spouts repeat their calls until all updates are complete.
    """

    seed: int
    mode: str
    spouts: tuple[SpoutProgram, ...]
    bolts: tuple[BoltProgram, ...]
    containers: int = 1
    serializer: str = "pickle"
    pending: int = 60_000
    batch_rows: int = 2500
    batch_bytes: int = 524_288
    tuple_max_bytes: int = 16_777_216
    updates: tuple[Update, ...] = ()

    @property
    def tracks_acks(self) -> bool:
        """Whether failed roots are reported to spouts."""
        return self.mode == "ATLEAST_ONCE"

    @property
    def components(self) -> tuple[SpoutProgram | BoltProgram, ...]:
        """Spouts, then bolts."""
        return *self.spouts, *self.bolts

    def consumers(self, component: str, stream: str) -> list[tuple[BoltProgram, Input]]:
        """The bolts that a stream goes to, with the grouping of each."""
        return [
            (bolt, each)
            for bolt in self.bolts
            for each in bolt.inputs
            if (each.component, each.stream) == (component, stream)
        ]

    def tasks(self, component: str) -> int:
        """The parallelism of a component at the start."""
        return next(each.tasks for each in self.components if each.name == component)

    def to_json(self) -> str:
        """The program as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Program:
        """The program of a JSON text.

        Raises:
            msgspec.ValidationError: when the text is not a program.
        """
        return msgspec.json.decode(text, type=cls)

"""Draws programs: a seed gives a program, always the same one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heron_testing.random_topologies.program import BoltProgram, Call, Emit, Input, Program, SpoutProgram, Update
from heron_testing.random_topologies.values import COLUMN_KINDS, KEYS, KINDS, SIZED_KINDS

__all__ = ["Choices", "random_program"]

HASH_GROUPING = "custom heron_testing.random_topologies.grouped_by_hash:HashGrouping"
_COLUMN_KEYS = 4
_SIZES = (0, 1, 2, 60, 900, 20_000)
_STREAMS = ("default", "other")
_OF_ANY_TASKS = frozenset({"SHUFFLE", "NONE", "LOCAL_OR_SHUFFLE", "FIELDS", "PARTIAL_KEY", "LOWEST"})
_LASTS_S = (0.0, 0.0, 0.05, 0.3)  # of a call
_SMALL_LIMIT = 30_000  # bytes of a tuple: large ones cost little then


@dataclass(frozen=True, slots=True)
class Choices:
    """What a program may be made of.

    Attributes:
        modes: reliability modes.
        serializers: values of ``topology.serializer``.
        groupings: groupings, as in `heron_testing.random_topologies.program.Input`. A custom grouping must decide by
            the values of a tuple alone, and use only the tasks that it is given.
        kinds: kinds of values: names of `heron_testing.random_topologies.values.KINDS`, or ``MODULE:FUNCTION`` for a
            function of a size and a number.
        keys: the number of keys: the first of `heron_testing.random_topologies.values.KEYS`, which begin with texts.
        columns: whether components may emit and receive columns.
        bad_values: whether tuples may be too large, or have values that cannot be encoded or decoded.
        failures: whether components may fail tuples and raise.
        most_tasks: the largest parallelism.
        most_bolts: the largest number of bolts.
        updates: whether the topology changes while it runs; only for programs that run as processes.
    """

    modes: Sequence[str] = ("ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE")
    serializers: Sequence[str] = ("pickle",)
    groupings: Sequence[str] = (
        *("SHUFFLE", "NONE", "LOCAL_OR_SHUFFLE", "ALL", "LOWEST", "FIELDS", "PARTIAL_KEY", "DIRECT"),
        HASH_GROUPING,
    )
    kinds: Sequence[str] = tuple(KINDS)
    keys: int = len(KEYS)
    columns: bool = True
    bad_values: bool = True
    failures: bool = True
    most_tasks: int = 3
    most_bolts: int = 3
    updates: bool = False


def random_program(seed: int, choices: Choices | None = None) -> Program:
    """The program of a seed.

    Args:
        seed: any number. The same seed and choices give the same program.
        choices: what it may be made of; None allows everything but updates.
    """
    return _Drawing(random.Random(seed), choices or Choices()).program(seed)


class _Drawing:
    def __init__(self, chance: random.Random, choices: Choices) -> None:
        self.chance = chance
        self.choices = choices
        self.columns = choices.columns and chance.random() < 0.4
        kinds = [kind for kind in choices.kinds if kind in COLUMN_KINDS] if self.columns else list(choices.kinds)
        self.columns = self.columns and bool(kinds)
        self.kinds = [chance.choice(kinds)] if self.columns else list(choices.kinds)
        self.keys = min(choices.keys, _COLUMN_KEYS if self.columns else chance.choice((1, 3, choices.keys)))
        self.bad = choices.bad_values and chance.random() < 0.25
        self.failing = choices.failures and chance.random() < 0.4
        self.uneven = not self.columns and self.sometimes(0.05) and "ascii" in self.kinds
        self.direct: set[tuple[str, str]] = set()

    def sometimes(self, share: float) -> bool:
        return self.chance.random() < share

    def program(self, seed: int) -> Program:
        chance = self.chance
        spouts = tuple(self.spout(f"spout{number}") for number in range(chance.choice((1, 1, 2))))
        bolts: list[BoltProgram] = []
        for number in range(chance.randint(1, self.choices.most_bolts)):
            bolts.append(self.bolt(f"bolt{number}", [*spouts, *bolts]))
        found = Program(
            seed,
            chance.choice(list(self.choices.modes)),
            spouts,
            tuple(bolts),
            containers=chance.choice((1, 1, 2, 3)),
            serializer=chance.choice(list(self.choices.serializers)),
            pending=chance.choice((1, 3, 20, 60_000)),
            batch_rows=2500 if self.uneven else chance.choice((1, 2, 7, 2500)),
            batch_bytes=chance.choice((1024, 524_288)),
            tuple_max_bytes=chance.choice((_SMALL_LIMIT, 16_777_216))
            if not (self.bad or self.uneven)
            else _SMALL_LIMIT,
        )
        return self.fitting(found)

    def fitting(self, program: Program) -> Program:
        """The program without parts that have no meaning together."""
        tracked, stateful = program.mode == "ATLEAST_ONCE", program.mode == "EFFECTIVELY_ONCE"
        spouts = []
        for spout in program.spouts:
            # At most once, a spout hears nothing of a tuple that cannot be encoded.
            silent = any(emit.bad for call in spout.calls for emit in call.emits) and not tracked
            end = "later" if spout.end == "ack" and (silent or not spout.ids or stateful) else spout.end
            spouts.append(replace(spout, end=end))
        bolts = [
            replace(bolt, moment="process") if bolt.moment == "queued" and stateful else bolt for bolt in program.bolts
        ]
        containers = min(program.containers, sum(each.tasks for each in program.components))
        program = replace(program, spouts=tuple(spouts), bolts=tuple(bolts), containers=containers)
        # A task that has ended cannot be updated, so all spouts must have calls to repeat.
        repeats = all(spout.calls and spout.end != "initialize" for spout in spouts)
        return self.updated(program) if self.choices.updates and repeats else program

    def spout(self, name: str) -> SpoutProgram:
        chance = self.chance
        calls = tuple(self.call() for _ in range(chance.choice((0, 1, 2, 4, 9))))
        if self.uneven:
            calls = (_uneven_call(), *calls)
        ends = ["before", "after", "later", "initialize", "thread", "ack", "deactivate"]
        return SpoutProgram(
            name,
            tasks=chance.randint(1, self.choices.most_tasks),
            calls=calls,
            end=chance.choices(ends, (3, 3, 3, 0.3, 1, 2, 1 if self.choices.updates else 0))[0] if calls else "later",
            ids=self.sometimes(0.8),
            replay=chance.choice(("queue", "queue", "at once", "never")),
        )

    def call(self) -> Call:
        chance = self.chance
        count = chance.choice((0, 1, 1, 2, 5, chance.choice((12, 40))))
        form = chance.choice(("rows", "batch", "ids")) if self.columns else "rows"
        if form == "batch" and self.sometimes(0.1):
            count = 600
        emits = tuple(self.emit() for _ in range(count))
        if form != "rows":
            emits = tuple(replace(each, bad="") for each in emits)
        return Call(emits, form, raises=self.failing and self.sometimes(0.1))

    def emit(self) -> Emit:
        kind = self.chance.choice(self.kinds)
        size = self.chance.choice(_SIZES) if kind in SIZED_KINDS else self.chance.choice(_SIZES[:3])
        bad = (
            self.chance.choice(("unpicklable", "undecodable", "too large")) if self.bad and self.sometimes(0.1) else ""
        )
        stream = self.chance.choices(_STREAMS, (4, 1))[0]
        return Emit(kind, size, self.chance.randrange(self.keys), stream, bad)

    def bolt(self, name: str, sources: Sequence[SpoutProgram | BoltProgram]) -> BoltProgram:
        chance = self.chance
        inputs: dict[tuple[str, str], Input] = {}
        for _ in range(chance.choice((1, 1, 2, 3))):
            source, stream = chance.choice(sources).name, chance.choices(_STREAMS, (4, 1))[0]
            inputs[source, stream] = Input(source, stream, self.grouping(source, stream))
        forms = ("rows", "columns") if self.columns else ("rows",)
        receives = chance.choice(forms)
        moments = ("process", "finish") if receives == "columns" else ("process", "process", "tick", "finish", "queued")
        emits = chance.choice(forms)
        moment = chance.choice(moments)
        return BoltProgram(
            name,
            tuple(inputs.values()),
            tasks=chance.randint(1, self.choices.most_tasks),
            fan_out=chance.choice((0, 1, 1, 2, 3)),
            streams=chance.choice((("default",), ("default", "other"), ("other",))),
            receives=receives,
            emits="rows" if moment == "queued" else emits,
            anchored=self.sometimes(0.8),
            moment=moment,
            fails=self.percent(),
            raises=self.percent(),
            raises_first=self.sometimes(0.5),
            acks_twice=receives == "rows" and self.sometimes(0.1),
        )

    def percent(self) -> int:
        return self.chance.choice((0, 3, 20)) if self.failing else 0

    def grouping(self, component: str, stream: str) -> str:
        """A grouping; at most one consumer of a stream is named by its emits."""
        found = self.chance.choice(list(self.choices.groupings))
        if found == "DIRECT":
            if (component, stream) in self.direct:
                return "SHUFFLE"
            self.direct.add((component, stream))
        return found

    def updated(self, program: Program) -> Program:
        """The program with its updates, and with calls that last while other tasks have learned of an update."""
        updates = self.updates(program)
        return replace(
            program,
            updates=(*updates, *self.removals(program, updates)),
            spouts=tuple(
                replace(spout, calls=tuple(replace(call, lasts_s=self.chance.choice(_LASTS_S)) for call in spout.calls))
                for spout in program.spouts
            ),
        )

    def removals(self, program: Program, updates: Sequence[Update]) -> tuple[Update, ...]:
        """An update after the others: all tasks but one of a bolt are removed."""
        present = {bolt.name: bolt.tasks for bolt in program.bolts if self.may_change_tasks(program, bolt)}
        for each in updates:
            present |= each.tasks
        able = [name for name, tasks in present.items() if tasks > 1]
        return (Update(tasks={self.chance.choice(able): 1}),) if able and self.sometimes(0.7) else ()

    def updates(self, program: Program) -> tuple[Update, ...]:
        """One or two changes while the topology runs."""
        chance = self.chance
        kinds: list[Callable[[Program], Update]] = [self.new_tasks, self.new_tasks, self.new_containers, self.pause]
        return tuple(chance.choice(kinds)(program) for _ in range(chance.choice((1, 1, 2))))

    def new_tasks(self, program: Program) -> Update:
        """Another number of tasks for a bolt whose inputs allow it."""
        able = [bolt.name for bolt in program.bolts if self.may_change_tasks(program, bolt)]
        if not able:
            return self.pause(program)
        name = self.chance.choice(able)
        others = [tasks for tasks in range(1, 4) if tasks != program.tasks(name)]
        return Update(tasks={name: self.chance.choice(others)})

    def may_change_tasks(self, program: Program, bolt: BoltProgram) -> bool:
        """Whether the oracle knows what a bolt receives although its number of tasks changes."""
        return (
            program.mode != "EFFECTIVELY_ONCE"
            and bolt.moment in ("process", "queued")
            and all(each.grouping in _OF_ANY_TASKS for each in bolt.inputs)
        )

    def new_containers(self, program: Program) -> Update:
        """Another number of containers; without checkpoints, only one more."""
        tasks = sum(each.tasks for each in program.components)
        if program.mode != "EFFECTIVELY_ONCE" or tasks <= program.containers:
            return self.pause(program)
        return Update(containers=program.containers + 1)

    def pause(self, program: Program) -> Update:
        """A pause."""
        return Update(pauses=True)


def _uneven_call() -> Call:
    """Small tuples, of which a batch has many, then small and large ones in turn: a flush of megabytes."""
    small, large = Emit("ascii"), Emit("ascii", _SMALL_LIMIT - 2000)
    return Call((small,) * 90 + (small, large) * 100)

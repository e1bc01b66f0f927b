"""What the bolts of a program receive, computed from the meaning of a topology and without the engine.

A program decides by identity and attempt, so the tuples of one attempt of a root are known. Only two things depend on
the run: how many calls a spout made that repeats them, and how often a root was emitted. The spouts remember both. The
oracle checks the attempts, too: a root is emitted again if, and only if, its tree has failed. Where bolts get columns,
a batch may hold rows of several roots, and a failure fails them all: a root may then have more attempts, but not less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from heron_testing.random_topologies.lineage import (
    Fate,
    Root,
    children_of,
    custom_grouping,
    fate_of,
    is_custom,
    roots_of,
)
from heron_testing.random_topologies.program import BoltProgram, Input, Program, SpoutProgram
from heron_testing.random_topologies.values import described, key_of, value_of

__all__ = ["Expected", "ExpectedRow", "calls_of", "expected_of"]

ExpectedRow = tuple[str, str, str, int, str, str]
"""Component and stream that a tuple comes from, its identity and attempt, key and value as described."""


@dataclass(slots=True)
class Expected:
    """What a run must give.

    Attributes:
        rows: the tuples that each bolt receives, over all of its tasks.
        places: the component indices that receive a tuple, by bolt and tuple, of groupings that say so.
        attempts: how often each root is emitted.
        may_repeat: whether roots may have more attempts than that.
    """

    rows: dict[str, Counter[ExpectedRow]]
    places: dict[tuple[str, ExpectedRow], tuple[int, ...]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    may_repeat: bool = False


def expected_of(program: Program, calls: Mapping[tuple[str, int], int], attempts: Mapping[str, int]) -> Expected:
    """What a run of a program must give.

    Args:
        program: the program.
        calls: the calls that each spout task made, by component and index.
        attempts: how often each root was emitted; roots without an entry have the expected number. Only for programs
            in which roots may have more attempts than expected.
    """
    found = Expected({bolt.name: Counter() for bolt in program.bolts}, may_repeat=_may_repeat(program))
    walk = _Walk(program, found)
    for spout in program.spouts:
        for index in range(max(spout.tasks, *(each + 1 for name, each in calls if name == spout.name), 0)):
            for number in range(calls.get((spout.name, index), len(spout.calls))):
                for root in roots_of(spout, index, number):
                    needed = walk.attempts_of(spout, root)
                    found.attempts[root.identity] = needed
                    made = max(needed, attempts.get(root.identity, needed)) if found.may_repeat else needed
                    for attempt in range(1, made + 1):
                        walk.emit(spout, root, attempt)
    return found


def _may_repeat(program: Program) -> bool:
    """Whether a failure may fail roots beside its own: a batch that a bolt gets has the roots of all of its rows."""
    return program.tracks_acks and any(bolt.receives == "columns" for bolt in program.bolts)


@dataclass(frozen=True, slots=True)
class _Tuple:
    component: str
    stream: str
    identity: str
    attempt: int
    key: object
    value: object
    bad: bool
    anchored: bool


class _Walk:
    """Follows tuples down the graph, and collects what the bolts receive."""

    def __init__(self, program: Program, expected: Expected) -> None:
        self.program = program
        self._expected = expected
        self._quiet = False

    def attempts_of(self, spout: SpoutProgram, root: Root) -> int:
        """How often a root is emitted: until its tree is complete."""
        if not (self.program.tracks_acks and spout.ids) or spout.replay == "never":
            return 1
        self._quiet = True
        attempt = 1
        while not self.emit(spout, root, attempt):
            attempt += 1
        self._quiet = False
        return attempt

    def emit(self, spout: SpoutProgram, root: Root, attempt: int) -> bool:
        """An attempt of a root; returns whether its tree is complete."""
        complete = True
        for identity, emit in root.emits:
            bad = emit.bad if attempt == 1 else ""
            value = None if bad else value_of(emit.kind, emit.size, identity)
            found = _Tuple(
                spout.name, emit.stream, identity, attempt, key_of(emit.key), value, bool(bad), anchored=spout.ids
            )
            complete = self._send(found, 1) and complete
        return complete

    def _send(self, found: _Tuple, times: int) -> bool:
        complete = True
        for bolt, subscription in self.program.consumers(found.component, found.stream):
            places = _chosen(bolt, subscription, found)
            copies = 1 if places is None else len(places)
            if places is not None:
                self._expected.places[bolt.name, _row(found)] = places
            if copies:
                complete = self._process(bolt, found, times * copies) and complete
        return complete or not found.anchored

    def _process(self, bolt: BoltProgram, found: _Tuple, times: int) -> bool:
        """What a bolt does with copies of a tuple; returns whether their trees are complete."""
        if found.bad:
            return False
        if not self._quiet:
            self._expected.rows[bolt.name][_row(found)] += times
        fate = fate_of(bolt, found.identity, found.attempt)
        complete = fate is Fate.ACKED
        if fate is Fate.RAISED and bolt.raises_first and bolt.receives == "rows":
            return False
        # Tuples that `finish` emits are anchored to nothing: the received ones are acked by then.
        put_off = bolt.moment == "finish" and (complete or bolt.receives == "columns")
        anchored = found.anchored and bolt.anchored and not put_off
        for child, stream in children_of(bolt, found.identity):
            emitted = _Tuple(bolt.name, stream, child, found.attempt, found.key, found.value, False, anchored)
            complete = self._send(emitted, times) and complete
        return complete


def _chosen(bolt: BoltProgram, subscription: Input, found: _Tuple) -> tuple[int, ...] | None:
    """The component indices that a tuple goes to; None for groupings that choose one by the state of the sender."""
    grouping = subscription.grouping
    if is_custom(grouping):
        chooser = custom_grouping(grouping)
        chooser.prepare(None, found.component, found.stream, range(bolt.tasks))  # type: ignore[arg-type]  # documented
        values = (found.identity, found.attempt, found.key, found.value)
        return tuple(dict.fromkeys(chooser.choose_tasks(values)))
    return {"ALL": tuple(range(bolt.tasks)), "LOWEST": (0,), "GLOBAL": (0,)}.get(grouping)


def _row(found: _Tuple) -> ExpectedRow:
    place = (found.component, found.stream, found.identity, found.attempt)
    return *place, described(found.key), described(found.value)


def calls_of(program: Program) -> Iterable[tuple[tuple[str, int], int]]:
    """The calls of each spout task of a program that repeats none."""
    for spout in program.spouts:
        for index in range(spout.tasks):
            yield (spout.name, index), 0 if spout.end == "initialize" else len(spout.calls)

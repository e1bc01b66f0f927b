"""Random topologies in the simulator give what they mean, and what a wrong engine does is found and made small."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import pytest

from heron.api import ICustomGrouping, TopologyContext
from heron.clock import monotonic_s
from heron.instance.output.stream_routes import ShuffleSplitter
from heron_simulator.simulated_spout import SimulatedSpout
from heron_testing.random_topologies import (
    BoltProgram,
    Call,
    Choices,
    Emit,
    Input,
    Program,
    SpoutProgram,
    differences,
    random_program,
    shrunk,
)
from heron_testing.random_topologies.comparison import unexpected_errors
from heron_testing.random_topologies.oracle import expected_of
from heron_testing.random_topologies.program_file import program_text, submit
from heron_testing.random_topologies.simulated import simulated_differences
from heron_testing.random_topologies.task_memory import TaskMemory
from heron_testing.random_topologies.values import KINDS, described, value_of

SHORT, LONG = 40, 2_060
"""How many programs `./dev test` and the recorded suite run: about 3 s and 77 s of a core."""

SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))


def check(seed: int) -> None:
    """Run a program; if it differs, show the smallest one that does."""
    program = random_program(seed)
    if simulated_differences(program):
        small = shrunk(program, simulated_differences, most_runs=500)
        pytest.fail(program_text(small, simulated_differences(small)))


def test_programs_give_what_they_mean() -> None:
    """In all reliability modes, rows and columns, with bad values, failures and replays."""
    for seed in range(SHORT):
        check(seed)


def test_a_batch_that_no_root_has_sent_is_an_anchor() -> None:
    """The smallest form of program 172: at least once, a spout emits without ids, and a bolt anchors to its batches."""
    spout = SpoutProgram(name="spout0", calls=(Call(emits=(Emit(),)),), ids=False)
    bolt = BoltProgram(name="bolt0", inputs=(Input(component="spout0"),), receives="columns")
    assert simulated_differences(Program(seed=172, mode="ATLEAST_ONCE", spouts=(spout,), bolts=(bolt,))) == []


def test_a_second_ack_of_a_tuple_does_not_ack_its_neighbour() -> None:
    """The smallest form of program 3000453: two of three tuples of a batch are acked twice, and the third one fails."""
    spout = SpoutProgram(name="spout0", tasks=2, calls=(Call(emits=(Emit(),) * 3, form="batch"),))
    bolt = BoltProgram(name="bolt0", inputs=(Input(component="spout0"),), fails=1, raises=20, acks_twice=True)
    assert simulated_differences(Program(seed=1, mode="ATLEAST_ONCE", spouts=(spout,), bolts=(bolt,))) == []


@pytest.mark.matrix
@pytest.mark.timeout(1800)
def test_many_programs_give_what_they_mean() -> None:
    """Other programs than the short form has."""
    for seed in range(SHORT, SHORT + LONG):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 600)
def test_programs_give_what_they_mean_for_minutes() -> None:
    """As many as the time allows."""
    end_s = monotonic_s() + SOAK_MINUTES * 60
    for seed in count(1_000_000):
        check(seed)
        if monotonic_s() >= end_s:
            print(f"{seed - 1_000_000 + 1} programs")  # noqa: T201  # what a soak did
            return


def test_a_seed_gives_the_same_program_which_json_and_a_file_keep() -> None:
    """Each process of a run reads the program anew."""
    for seed in range(100):
        program = random_program(seed, Choices(updates=seed % 2 == 0))
        assert random_program(seed, Choices(updates=seed % 2 == 0)) == program
        assert Program.from_json(program.to_json()) == program
        names: dict[str, Any] = {}
        exec(program_text(program, ["a 'difference'\\"]), names)  # noqa: S102  # its own text
        assert names["PROGRAM"] == program


def test_updates_remove_tasks_while_calls_last() -> None:
    """What slower tasks send behind the first PLAN marker is lost if a removed task ends at this marker."""
    programs = [random_program(seed, Choices(updates=True)) for seed in range(100)]
    slow = [each for each in programs if any(call.lasts_s for spout in each.spouts for call in spout.calls)]
    removing = [each for each in slow if any(1 in update.tasks.values() for update in each.updates)]
    assert {each.mode for each in removing} == {"ATMOST_ONCE", "ATLEAST_ONCE"}
    assert not any(call.lasts_s for spout in random_program(3).spouts for call in spout.calls)


def test_choices_bound_programs() -> None:
    """For authors who test one serializer or grouping."""
    choices = Choices(
        modes=("ATMOST_ONCE",),
        serializers=("plain",),
        groupings=("FIELDS",),
        kinds=("int",),
        keys=2,
        columns=False,
        most_tasks=1,
    )
    for seed in range(50):
        program = random_program(seed, choices)
        assert (program.mode, program.serializer) == ("ATMOST_ONCE", "plain")
        assert {each.grouping for bolt in program.bolts for each in bolt.inputs} == {"FIELDS"}
        emits = [emit for spout in program.spouts for call in spout.calls for emit in call.emits]
        assert {(emit.kind, emit.key) for emit in emits} <= {("int", 0), ("int", 1)}
        assert {each.tasks for each in program.components} == {1}
        assert not any(spout.columns for spout in program.spouts)


def pairs(size: int, number: int) -> object:
    """A kind of value of a user."""
    return [number, "x" * size]


class Odd(ICustomGrouping):
    """A grouping of a user; `broken` has it choose by what only one task knows."""

    broken: ClassVar[bool] = False

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        self.tasks = target_tasks
        self.seen = 0

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        self.seen += self.broken
        return [self.tasks[(len(values[0]) + self.seen) % len(self.tasks)]]


def test_values_and_groupings_of_users_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grouping that breaks its rule is found."""
    monkeypatch.setitem(sys.modules, "of_a_user", sys.modules[__name__])
    choices = Choices(groupings=("custom of_a_user:Odd",), kinds=("of_a_user:pairs",), columns=False)
    programs = [random_program(seed, choices) for seed in range(40)]
    assert not any(map(simulated_differences, programs))
    monkeypatch.setattr(Odd, "broken", True)
    assert any("custom of_a_user:Odd" in line for each in programs for line in simulated_differences(each))


def test_each_kind_of_value_has_a_description_of_its_own() -> None:
    """A description that is the same for two values would hide a difference."""
    values = {kind: described(value_of(kind, 100, "identity")) for kind in KINDS}
    assert len(set(values.values())) == len(KINDS)
    assert described(1) != described(True) != described(1.0)
    assert described([1]) != described((1,))
    assert described("x" * 100) != described("x" * 99 + "y")


def one_bolt(grouping: str = "ALL", mode: str = "ATLEAST_ONCE", **changes: Any) -> Program:  # noqa: ANN401
    """A spout task that emits two tuples, and a bolt of two tasks that emits to a sink."""
    spout = SpoutProgram("spout", calls=(Call((Emit(), Emit(key=1))),))
    bolt = BoltProgram("bolt", (Input("spout", grouping=grouping),), tasks=2, **changes)
    return Program(7, mode, (spout,), (bolt, BoltProgram("sink", (Input("bolt"),))))


def received(program: Program, bolt: str) -> Counter[tuple[str, int]]:
    """Identity and attempt of what a bolt must receive."""
    rows = expected_of(program, {("spout", 0): 1}, {}).rows[bolt]
    return Counter({(row[2], row[3]): number for row, number in rows.items()})


def test_the_oracle_counts_copies_children_and_attempts() -> None:
    """By hand: each tuple goes to two tasks, each of which emits two; a failed first attempt is emitted again."""
    assert received(one_bolt(fan_out=2), "bolt") == {("spout.0:0/0", 1): 2, ("spout.0:0/1", 1): 2}
    assert received(one_bolt(fan_out=2), "sink") == {
        (f"spout.0:0/{emit}>bolt.{child}", 1): 2 for emit in range(2) for child in range(2)
    }
    fails = one_bolt("LOWEST", fails=100)
    assert received(fails, "sink") == {
        (f"spout.0:0/{emit}>bolt.0", 1 + again): 1 for emit in range(2) for again in (0, 1)
    }
    assert received(replace(fails, mode="ATMOST_ONCE"), "sink").total() == 2
    raises = one_bolt("LOWEST", raises=100, raises_first=True)
    assert received(raises, "sink") == {(f"spout.0:0/{emit}>bolt.0", 2): 1 for emit in range(2)}


def memories(program: Program) -> list[TaskMemory]:
    """What the tasks of `one_bolt` remember after a right run at most once."""
    spout = TaskMemory("spout", 0, 1, calls=1)
    bolts = [TaskMemory("bolt", index, 2 + index) for index in range(2)]
    sink = TaskMemory("sink", 0, 4)
    for place, key in enumerate(("str ''", "str 'b'")):
        identity = f"spout.0:0/{place}"
        value = described(value_of("int", 0, identity))
        spout.attempts[identity] = 1
        spout.acked.append(identity)
        for each in bolts:
            each.rows.append(("spout", "default", 1, identity, 1, key, value))
            sink.rows.append(("bolt", "default", each.task_id, f"{identity}>bolt.0", 1, key, value))
    return [spout, *bolts, sink]


def _moved(found: list[TaskMemory]) -> None:
    found[2].rows.append(found[1].rows.pop())


def _changed(found: list[TaskMemory]) -> None:
    found[1].rows[0] = (*found[1].rows[0][:6], "int 1")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda found: found[1].rows.pop(), "bolt: 1 of 4 tuples missing"),
        (lambda found: found[3].rows.append(found[3].rows[0]), "sink: 1 of 4 tuples too much"),
        (_changed, "bolt: 1 of 4 tuples too much"),
        (_moved, "bolt, ALL of spout: tuple spout.0:0/1 came to tasks"),
        (lambda found: found[0].acked.pop(), "acked 0 times and failed 0 times"),
        (lambda found: setattr(found[0], "surplus", 2), "called 2 times after end() had returned"),
        (lambda found: setattr(found[0], "calls", 0), "made 0 calls instead of 1"),
        (lambda found: found[0].attempts.update({"spout.0:0/0": 2}), "was emitted 2 times instead of 1"),
    ],
)
def test_each_difference_is_named(spoil: Callable[[list[TaskMemory]], object], message: str) -> None:
    """A run that is right has none; a spoilt one is told by component and tuple."""
    program = one_bolt(mode="ATMOST_ONCE")
    found = memories(program)
    assert differences(program, found) == []
    spoil(found)
    assert message in "\n".join(differences(program, found))


def test_errors_that_no_program_asks_for_are_differences() -> None:
    """An engine that hides a fault behind an error still has it."""
    program = one_bolt()
    asked = "process with X raised RaisedByProgram: call 1"
    assert unexpected_errors(program, [asked, "emit on stream 'default' with X"]) == [
        "error: emit on stream 'default' with X"
    ]


def first_failing(most: int = 200) -> Program:
    """The first program that differs, made small."""
    seed = next(seed for seed in range(most) if simulated_differences(random_program(seed)))
    return shrunk(random_program(seed), simulated_differences, most_runs=300)


def test_a_call_after_the_end_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest program with this fault has one spout, one call and one emit."""
    monkeypatch.setattr(SimulatedSpout, "_may_call", lambda _self: True)
    small = first_failing()
    assert len(small.spouts) == 1
    assert small.bolts == ()
    assert len(small.spouts[0].calls) == 1
    assert len(small.spouts[0].calls[0].emits) <= 1
    assert len(program_text(small).splitlines()) < 25


def test_a_shuffle_that_is_not_in_turn_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest program has two emits and a bolt of two tasks."""
    monkeypatch.setattr(ShuffleSplitter, "deal", lambda self, parts: list(self._tasks[:parts]))
    small = first_failing()
    assert (len(small.spouts), len(small.bolts)) == (1, 1)
    assert small.bolts[0].tasks == 2
    assert sum(len(call.emits) for call in small.spouts[0].calls) <= 4


def test_a_file_prints_its_differences(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself runs it in the simulator."""
    monkeypatch.setattr("sys.argv", ["file"])
    submit(one_bolt())
    assert capsys.readouterr().out == "no difference\n"
    monkeypatch.setattr(SimulatedSpout, "_may_call", lambda _self: True)
    program = one_bolt()
    submit(replace(program, spouts=(replace(program.spouts[0], end="after"),)))
    assert re.search(r"spout\[0\]: next_tuple was called \d+ times after end\(\) had returned", capsys.readouterr().out)

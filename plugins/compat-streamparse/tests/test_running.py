"""Projects in the simulator: counts, acks, batches and the attributes of components."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from heron.api.capture import TopologySource
from heron.errors import EmitError, TopologyFailedError
from heron_compat_streamparse.hosting.hosted_bolt import HostedBolt
from heron_compat_streamparse.hosting.hosted_spout import HostedSpout
from heron_simulator.author_code import LiveCode
from heron_simulator.simulation import Simulation
from heron_testing.fake_clock import FakeClock

LoadProject = Callable[..., TopologySource]

WORDS = ["dog", "cat", "zebra", "elephant"]


def author(simulation: Simulation, name: str, index: int = 0) -> Any:  # noqa: ANN401  # a class of the program
    """Return the author's object of a task."""
    return cast("HostedBolt | HostedSpout", simulation.component(name, index)).author


def steps(simulation: Simulation, count: int = 40) -> None:
    """Let every task take turns."""
    for _ in range(count):
        simulation.step()


@pytest.mark.parametrize("ackers", [0, 1])
def test_the_quickstart_project_counts_exactly(project: Path, load: LoadProject, ackers: int) -> None:
    """Its spout never ends, so the counts are compared with what it has emitted."""
    source = load(project / "topologies" / "wordcount.py", "--ackers", str(ackers))
    with Simulation(source, clock=FakeClock()) as simulation:
        steps(simulation, 200)
        counts = Counter[str]()
        for index in (0, 1):
            found = author(simulation, "count_bolt", index).counter
            assert not set(found) & set(counts), "a word belongs to one task"
            counts.update(found)
        emitted = simulation.counts()["word_spout"].emitted
        expected = {word: (emitted - place + 3) // 4 for place, word in enumerate(WORDS)}
        assert counts == {**expected, "dog": 10 * expected["dog"]}
        assert simulation.counts()["count_bolt"].emitted == emitted
        assert simulation.errors() == ()


def test_effectively_once_that_a_command_sets_is_refused(project: Path, load: LoadProject) -> None:
    """``--set`` changes the definition after the topology was loaded."""
    source = load(project / "topologies" / "wordcount.py")
    definition = source.definition()
    changed = replace(definition, config={**definition.config, "topology.reliability.mode": "EFFECTIVELY_ONCE"})
    refusal = r"ConfigError: component '\w+': .* is EFFECTIVELY_ONCE, .*; set ATLEAST_ONCE"
    with pytest.raises(TopologyFailedError, match=refusal):
        Simulation(changed, clock=FakeClock(), code=LiveCode(source))


PARTS = """
from streamparse import *
from streamparse import BatchingBolt, Bolt, Grouping, ReliableSpout, Spout, Stream, TicklessBatchingBolt, Topology

class Numbers(ReliableSpout):
    outputs = ["number", "parity"]
    def initialize(self, conf, context):
        self.left = list(range(conf.get("numbers", 12)))
        self.acked, self.failed = [], []
    def next_tuple(self):
        if self.left:
            number = self.left.pop(0)
            self.emit([number, number % 2], tup_id=number)
    def ack(self, tup_id):
        self.acked.append(tup_id)
        super().ack(tup_id)
    def fail(self, tup_id):
        self.failed.append(tup_id)
        super().fail(tup_id)
"""

BATCHES = (
    PARTS
    + """
class Batches(BatchingBolt):
    outputs = ["parity", "numbers"]
    def initialize(self, conf, context):
        self.calls = []
    def group_key(self, tup):
        return tup.values.parity
    def process_batch(self, key, tups):
        self.calls.append((key, [tup.values.number for tup in tups]))
        if key == 1 and sum(call[0] == 1 for call in self.calls) == 1:
            raise RuntimeError("the first odd batch")
        self.emit([key, [tup.values.number for tup in tups]])

class Seen(Bolt):
    def initialize(self, conf, context):
        self.rows = []
    def process(self, tup):
        self.rows.append(tuple(tup.values))

class Batched(Topology):
    config = {"topology.tick.tuple.freq.secs": 1}
    numbers = Numbers.spec()
    batches = Batches.spec(inputs=[numbers])
    seen = Seen.spec(inputs=batches)
"""
)


@pytest.fixture
def simulated(tmp_path: Path, load: LoadProject) -> Iterator[Any]:
    """Simulate the text of a program; returns the simulation."""
    open_ones = []

    def start(text: str, *argv: str) -> Simulation:
        path = tmp_path / "own_topology.py"
        path.write_text(text)
        simulation = Simulation(load(path, *argv), clock=FakeClock())
        open_ones.append(simulation)
        return simulation

    yield start
    for each in open_ones:
        each.close()


def test_a_batch_that_fails_is_replayed_alone(simulated: Any) -> None:  # noqa: ANN401
    """The other batch is acked, and the failed tuples come again as one batch."""
    simulation = simulated(BATCHES)
    steps(simulation)
    simulation.advance(8)
    spout, calls = author(simulation, "numbers"), author(simulation, "batches").calls
    odd, even = [1, 3, 5, 7, 9, 11], [0, 2, 4, 6, 8, 10]
    assert calls == [(0, even), (1, odd), (1, odd)]
    assert spout.failed == odd
    assert sorted(spout.acked) == sorted(odd + even)
    assert spout.unacked_tuples == {}
    assert sorted(author(simulation, "seen").rows) == [(0, even), (1, odd)]
    assert ["the first odd batch" in each for each in simulation.errors()] == [True]


@pytest.mark.parametrize("faults", [(0,), (1,), (0, 1)])
def test_batches_after_one_that_fails_at_the_end_are_processed(simulated: Any, faults: tuple[int, ...]) -> None:  # noqa: ANN401
    """No tick comes any more, and every tuple is settled."""
    text = BATCHES.replace("if key == 1 and", f"if key in {faults} and").replace("[0] == 1 for", "[0] == key for")
    simulation = simulated(text)
    steps(simulation)
    bolt = simulation.component("batches")
    bolt.finish()
    steps(simulation)
    assert [key for key, _ in bolt.author.calls] == [0, 1]
    spout = author(simulation, "numbers")
    settled = {parity: spout.failed if parity in faults else spout.acked for parity in (0, 1)}
    assert {parity: [each for each in found if each % 2 == parity] for parity, found in settled.items()} == {
        0: [0, 2, 4, 6, 8, 10],
        1: [1, 3, 5, 7, 9, 11],
    }


def test_batches_wait_until_more_ticks_have_come_than_the_class_says(simulated: Any) -> None:  # noqa: ANN401
    """As in pystorm, the default of one tick means the second tick."""
    simulation = simulated(BATCHES)
    simulation.advance(1.5)
    assert author(simulation, "batches").calls == []
    simulation.advance(1)
    assert author(simulation, "batches").calls


def test_a_tickless_bolt_has_a_period_of_its_own(simulated: Any) -> None:  # noqa: ANN401
    """Ticks of the topology do not change it, and a longer period may be set in `initialize`."""
    tickless = "class Batches(TicklessBatchingBolt):\n    secs_between_batches = 0.5"
    text = BATCHES.replace("class Batches(BatchingBolt):", tickless)
    simulation = simulated(text)
    steps(simulation)
    simulation.advance(0.4)
    assert author(simulation, "batches").calls == []
    simulation.advance(2)
    assert sorted(author(simulation, "numbers").acked) == list(range(12))
    longer = text.replace("self.calls = []", "self.calls = []; self.secs_between_batches = 2")
    simulation = simulated(longer)
    simulation.advance(1.9)
    assert author(simulation, "batches").calls == []
    simulation.advance(0.7)
    assert author(simulation, "batches").calls


MANUAL = (
    PARTS
    + """
class Manual(Bolt):
    auto_ack = auto_anchor = False
    outputs = ["number", Stream(fields=["number"], name="late", direct=True)]
    def initialize(self, conf, context):
        self.kept, self.ids, self.ticks = [], None, []
    def process(self, tup):
        self.kept.append(tup)
        self.ids = self.emit([tup.values.number], anchors=[tup], need_task_ids=True)
        if tup.values.number == 3:
            self.fail(tup.id)
            self.kept.pop()
    def process_tick(self, tup):
        assert self.is_tick(tup) and not self.is_heartbeat(tup)
        self.ticks.append(tup)
        for tup in self.kept:
            late = self.context["task->component"]
            task = next(int(task) for task, name in late.items() if name == "seen")
            to = {"stream": "late", "anchors": [tup.id], "direct_task": task, "need_task_ids": True}
            assert self.emit([tup.values.number], **to) == [task]
            self.ack(tup)
        self.kept = []

class Seen(Bolt):
    auto_fail = False
    def initialize(self, conf, context):
        self.rows = []
    def process(self, tup):
        self.rows.append((tup.stream, tup.values.number))

class Acked(Topology):
    config = {"topology.tick.tuple.freq.secs": 1, "topology.message.timeout.secs": 300}
    numbers = Numbers.spec()
    manual = Manual.spec(inputs=[numbers])
    seen = Seen.spec(inputs=[manual, manual["late"]])
"""
)


def test_acks_by_hand_anchors_and_direct_emits(simulated: Any) -> None:  # noqa: ANN401
    """Tuples and their ids mean the same; a spout hears of a failed tuple and replays it."""
    simulation = simulated(MANUAL, "-o", "numbers=5")
    steps(simulation)
    simulation.advance(2)
    steps(simulation)
    spout, manual, seen = (author(simulation, name) for name in ("numbers", "manual", "seen"))
    assert manual.ids == [seen.task_id]
    assert spout.failed == [3] * 4, "max_fails is 3, and the fourth failure counts as an ack"
    assert sorted(spout.acked) == [0, 1, 2, 3, 4]
    assert [number for stream, number in seen.rows if stream == "late"] == [0, 1, 2, 4]
    assert manual.ticks[0][1:4] == ("__system", "__tick", -1)
    assert manual.ticks[0].values.rate_secs == 1
    assert simulation.errors() == ()


def test_an_anchor_that_was_acked_is_an_error(simulated: Any) -> None:  # noqa: ANN401
    """Storm refuses it too; the message says what to do."""
    text = MANUAL.replace(
        "if tup.values.number == 3:", "self.ack(tup); self.emit([1], anchors=[tup])\n        if False:"
    )
    simulation = simulated(text, "-o", "numbers=1")
    simulation.step()
    simulation.step()
    (error,) = simulation.errors()
    assert "emit anchored to the tuple '1', which is acked or failed; emit before the ack" in error


@pytest.mark.parametrize(("auto_fail", "failed"), [(True, [3]), (False, [])])
def test_an_exception_fails_its_tuple_if_the_bolt_wants_it(
    simulated: Any,  # noqa: ANN401
    auto_fail: bool,
    failed: list[int],
) -> None:
    """The bolt goes on with its state, and the error is shown with the author's line."""
    text = f"""{PARTS}
class Faulty(Bolt):
    auto_fail = {auto_fail}
    def initialize(self, conf, context):
        self.seen, self.raised = 0, False
    def process(self, tup):
        self.seen += 1
        if tup.values.number == 3 and not self.raised:
            self.raised = True
            raise ValueError("three")

class Failing(Topology):
    numbers = Numbers.spec()
    faulty = Faulty.spec(inputs=[numbers])
"""
    simulation = simulated(text)
    steps(simulation)
    spout = author(simulation, "numbers")
    assert (spout.failed, author(simulation, "faulty").seen) == (failed, 12 + len(failed))
    assert sorted(spout.acked) == [each for each in range(12) if auto_fail or each != 3]
    (error,) = simulation.errors()
    assert "ValueError: three" in error
    assert "own_topology.py, line " in error


def test_a_component_has_the_attributes_of_pystorm(simulated: Any, caplog: pytest.LogCaptureFixture) -> None:  # noqa: ANN401
    """`storm_conf` has Storm's keys, and the context those of the multilang protocol."""
    text = f"""{PARTS}
class Look(Bolt):
    outputs = ["a", Stream(fields=["b"], name="other")]
    config = {{"mine": [1], "topology.max.task.parallelism": 3}}
    def process(self, tup):
        self.given = tup
        self.report_metric("gauge", 7)
        self.report_metric("count", None)
        self.report_metric("keyed", {{"x": 1}})
        self.log("logged", "warn")
        self.logger.debug("hidden")
        self.raise_exception(KeyError("shown"), tup)

class Last(Bolt):
    def process(self, tup):
        pass

class Looking(Topology):
    config = {{"topology.workers": 2, "topology.kryo.register": [], "pystorm.log.level": "warn"}}
    numbers = Numbers.spec()
    look = Look.spec(inputs={{numbers: Grouping.fields("number")}})
    last = Last.spec(inputs={{look["other"]: Grouping.GLOBAL}}, par=2)
"""
    simulation = simulated(text, "-N", "named", "-o", "numbers=1")
    simulation.step()
    look = author(simulation, "look")
    conf, context = look.storm_conf, look.context
    assert (look.topology_name, look.component_name, look.debug) == ("named", "look", False)
    assert (conf["mine"], conf["topology.max.task.parallelism"], conf["topology.workers"]) == ([1], 3, 2)
    assert (conf["topology.name"], conf["topology.acker.executors"], conf["topology.stmgrs"]) == ("named", 2, 2)
    assert not [key for key in conf if key.startswith("streamparse")]
    assert context["taskid"] == look.task_id
    assert sorted(context["task->component"].values()) == ["last", "last", "look", "numbers"]
    assert context["source->stream->fields"]["numbers"] == {"default": ["number", "parity"]}
    assert context["source->stream->grouping"] == {"numbers": {"default": {"type": "FIELDS", "fields": ["number"]}}}
    assert context["stream->outputfields"] == {"default": ["a"], "other": ["b"]}
    assert context["stream->target->grouping"] == {"other": {"last": {"type": "GLOBAL"}}}
    assert type(look.given).__name__ == "Tuple"
    assert type(look.given.values).__name__ == "NumbersDefaultTuple"
    assert (look.given.component, look.given.stream, look.given.values._asdict()) == (
        "numbers",
        "default",
        {"number": 0, "parity": 0},
    )
    assert (look.given.id, isinstance(look.given, tuple)) == ("1", True)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("pystorm")] == ["logged"]
    metrics = simulation.read_metrics("look")
    assert {name: metrics[name] for name in ("gauge", "count", "keyed/x")} == {"gauge": 7, "count": 1, "keyed/x": 1}
    assert ["KeyError: 'shown'" in each for each in simulation.errors()] == [True]


def test_a_spout_must_give_an_id_and_values_in_a_list(simulated: Any) -> None:  # noqa: ANN401
    """Both are errors in pystorm too."""
    simulation = simulated(MANUAL, "-o", "numbers=0")
    spout = author(simulation, "numbers")
    with pytest.raises(EmitError, match="give tup_id, so that the tuple can be replayed"):
        spout.emit([1, 1])
    with pytest.raises(EmitError, match="emit of a str, not a list or tuple of values"):
        spout.emit("ab", tup_id=1)


def test_a_value_may_change_after_its_emit(simulated: Any) -> None:  # noqa: ANN401
    """pystorm encodes at once; an instance encodes a batch later."""
    text = f"""{PARTS}
class Growing(Bolt):
    outputs = ["seen"]
    def initialize(self, conf, context):
        self.seen = {{"all": [], "pair": ([],)}}
    def process(self, tup):
        self.seen["all"].append(tup.values.number)
        self.emit([self.seen])

class Last(Bolt):
    def initialize(self, conf, context):
        self.lengths = []
    def process(self, tup):
        self.lengths.append(len(tup.values.seen["all"]))

class Changing(Topology):
    numbers = Numbers.spec()
    growing = Growing.spec(inputs=[numbers])
    last = Last.spec(inputs=[growing])
"""
    simulation = simulated(text)
    steps(simulation)
    assert author(simulation, "last").lengths == list(range(1, 13))


def test_a_pause_reaches_the_spout(simulated: Any) -> None:  # noqa: ANN401
    """Programs stop their connections meanwhile."""
    methods = (
        "    def activate(self):\n        self.paused = False\n    def deactivate(self):\n        self.paused = True\n"
    )
    simulation = simulated(MANUAL.replace("    def next_tuple", f"{methods}    def next_tuple"))
    spout = simulation.component("numbers")
    spout.deactivate()
    assert author(simulation, "numbers").paused is True
    spout.activate()
    assert author(simulation, "numbers").paused is False

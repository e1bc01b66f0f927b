"""A topology that a replay runs, and the tasks that a capture asks: from definitions alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heron.api import Bolt, Grouping, ICustomGrouping, Spout, Stream, TopologyBuilder, Tuple
from heron.api.definition import TopologyDefinition
from heron.errors import UsageError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron_load_replay.capturing import key_fields, spout_tasks
from heron_load_replay.load_description import FORMAT, LoadDescription, SpoutLoad
from heron_load_replay.replay_order import ORDER_KEY
from heron_load_replay.replayed_topology import ReplayTerms, replayed

FILE, RESULTS = Path("/load.parquet"), Path("/results")
AT_LEAST_ONCE = {"topology.reliability.mode": "ATLEAST_ONCE"}
LOAD = LoadDescription(
    FORMAT,
    "t",
    0.0,
    1.0,
    shape=False,
    spouts={
        "words": SpoutLoad({"default": ("word", "n")}, (30, 10)),
        "clicks": SpoutLoad({"default": ("page",)}, (60,)),
    },
)


class Words(Spout):
    outputs = ("word", "n")

    def next_tuple(self) -> None:
        """Never called here."""


class Clicks(Spout):
    outputs = ("page", Stream(fields=["user"], name="users"))

    def next_tuple(self) -> None:
        """Never called here."""


class Count(Bolt):
    def process(self, tup: Tuple) -> None:
        """Never called here."""


class First(ICustomGrouping):
    def prepare(self, *_: object) -> None:
        """Nothing."""

    def choose_tasks(self, values: object) -> list[int]:
        """Never called here."""
        raise NotImplementedError


def topology(grouping: Grouping, config: dict[str, object] | None = None) -> TopologyDefinition:
    builder = TopologyBuilder("t")
    builder.set_config(config or {})
    words = builder.add_spout("words", Words, par=3)
    clicks = builder.add_spout("clicks", Clicks, par=1)
    builder.add_bolt("count", Count, par=2, inputs={words: grouping, clicks["users"]: Grouping.fields("user")})
    builder.add_bolt("other", Count, par=1, inputs={clicks: Grouping.SHUFFLE})
    return builder.definition()


def order_of(definition: TopologyDefinition, spout: str) -> dict[str, object]:
    order = definition.component(spout).config[ORDER_KEY]
    assert isinstance(order, dict)
    return order


def test_spouts_are_replaced_and_bolts_stay() -> None:
    """It runs beside the topology that was captured, so it has another name."""
    before = topology(Grouping.fields("word"))
    after = replayed(before, ReplayTerms(FILE, RESULTS, speed=2.0), LOAD)
    assert after.name == "t-replay"
    assert after.config == before.config
    assert after.component("count") == before.component("count")
    assert {after.component(each).entry for each in LOAD.spouts} == {"heron_load_replay.replay_spout:ReplaySpout"}
    assert after.component("words").parallelism == 3
    assert order_of(after, "words") == {
        "file": "/load.parquet",
        "results": "/results",
        "partitions": (30, 10),
        "speed": 2.0,
        "rate": 0.0,
        "seconds": 1.0,
    }


def test_spouts_share_an_open_rate_by_their_tuples() -> None:
    """All of them then end at the same time."""
    after = replayed(topology(Grouping.fields("word")), ReplayTerms(FILE, RESULTS, rate=1000.0), LOAD)
    assert [order_of(after, each)["rate"] for each in ("words", "clicks")] == [400.0, 600.0]


def test_a_closed_system_bounds_the_trees_of_a_task() -> None:
    """The engine does it, so it needs acks."""
    terms = ReplayTerms(FILE, RESULTS, pending=5)
    after = replayed(topology(Grouping.fields("word"), dict(AT_LEAST_ONCE)), terms, LOAD)
    assert after.component("words").config["topology.max.spout.pending"] == 5
    with pytest.raises(
        UsageError, match=r"--closed: topology 't' tracks no acks; .* `--set topology\.reliability\.mode="
    ):
        replayed(topology(Grouping.fields("word")), terms, LOAD)


@pytest.mark.parametrize(
    ("spouts", "why"),
    [
        ({"words": LOAD.spouts["words"]}, "has the load of the spouts 'words', and topology 't' has 'clicks', 'words'"),
        (
            {**LOAD.spouts, "words": SpoutLoad({"default": ("word",)}, (1,))},
            "emits 'word' on stream 'default', and that",
        ),
        ({**LOAD.spouts, "words": SpoutLoad({"gone": ("word",)}, (1,))}, "has no stream 'gone'"),
    ],
)
def test_a_file_of_other_spouts_is_refused(spouts: dict[str, SpoutLoad], why: str) -> None:
    """Before anything is started; the message has both sides."""
    with pytest.raises(UsageError, match=why):
        replayed(topology(Grouping.SHUFFLE), ReplayTerms(FILE, RESULTS, speed=1.0), replace(LOAD, spouts=spouts))


def test_a_direct_stream_is_refused() -> None:
    """The file does not have the tasks that received its tuples."""
    with pytest.raises(UsageError, match="is received directly"):
        replayed(topology(Grouping.DIRECT), ReplayTerms(FILE, RESULTS, speed=1.0), LOAD)


def test_key_fields_are_those_of_groupings() -> None:
    """A custom grouping may use every field of its stream."""
    assert key_fields(topology(Grouping.SHUFFLE)) == {("users", "user")}
    assert key_fields(topology(Grouping.fields("word"))) == {("default", "word"), ("users", "user")}
    assert key_fields(topology(Grouping.custom(First()))) == {("default", "word"), ("default", "n"), ("users", "user")}


def test_every_task_of_a_spout_has_a_partition() -> None:
    """Their places are dense, also when tasks have left."""
    none = Resource(0.0, 0, 0)
    instances = [("words", 5, 2), ("count", 2, 0), ("clicks", 3, 0), ("words", 1, 0)]
    packed = ContainerPlan(1, tuple(InstancePlan(*each, none) for each in instances), none)
    assert spout_tasks(topology(Grouping.SHUFFLE), PackingPlan("p", (packed,))) == {1: 0, 5: 1, 3: 0}

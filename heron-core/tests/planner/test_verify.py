"""Invalid topologies are refused before they start; the message names place, value and remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.dead_letter import with_dead_letters
from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.errors import TopologyError
from heron.planner.verify import verify

_FIELDS = GroupingDefinition(GroupingKind.FIELDS, ("word",))
_SHUFFLE = GroupingDefinition(GroupingKind.SHUFFLE)


def _spout(name: str = "words", **changes: object) -> ComponentDefinition:
    spout = ComponentDefinition(
        name, ComponentKind.SPOUT, "my.file:Words", 2, (StreamDefinition("default", ("word", "line")),)
    )
    return replace(spout, **changes)  # type: ignore[arg-type]  # each test knows the field it changes


def _bolt(name: str = "count", *inputs: InputDefinition, **changes: object) -> ComponentDefinition:
    bolt = ComponentDefinition(
        name,
        ComponentKind.BOLT,
        "my.file:Count",
        2,
        (StreamDefinition("default", ("word", "count")),),
        inputs or (InputDefinition("words", "default", _FIELDS),),
    )
    return replace(bolt, **changes)  # type: ignore[arg-type]  # each test knows the field it changes


def _topology(
    *components: ComponentDefinition, name: str = "wordcount", config: dict[str, object] | None = None
) -> TopologyDefinition:
    return TopologyDefinition(name, components, config or {})


def _input(
    component: str = "words", stream: str = "default", grouping: GroupingDefinition = _SHUFFLE
) -> InputDefinition:
    return InputDefinition(component, stream, grouping)


def test_accepts_a_valid_topology() -> None:
    """The topology has each kind of grouping."""
    groupings = [
        GroupingDefinition(GroupingKind.CUSTOM, entry="my.file:Mine", arguments={"n": 1}),
        GroupingDefinition(GroupingKind.CUSTOM),
        GroupingDefinition(GroupingKind.PARTIAL_KEY, ("word", "line")),
        _FIELDS,
        *(
            GroupingDefinition(kind)
            for kind in GroupingKind
            if kind not in (GroupingKind.CUSTOM, GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)
        ),
    ]
    bolts = [_bolt(f"bolt-{at}", _input(grouping=grouping)) for at, grouping in enumerate(groupings)]
    verify(_topology(_spout(), *bolts))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is empty"),
        ("a/b", "'/' in it, which separates"),
        ("a.b", "'.' in it, which separates"),
        ("a b", "' ' in it; use"),
        ("zürich", "'ü' in it"),
        ("a\n", "in it"),
        ("x" * 201, "201 characters, the limit is 200"),
        ("__tick", "is reserved for tick tuples"),
        ("__system", "is reserved for tick tuples"),
    ],
)
def test_refuses_an_invalid_name(name: str, message: str) -> None:
    """Names of topologies, components and streams become file, node and metric names."""
    with pytest.raises(TopologyError, match=f"topology name .*{message}|topology name {message}"):
        verify(_topology(_spout(), _bolt(), name=name))
    with pytest.raises(TopologyError, match=f"component name.*{message}"):
        verify(_topology(_spout(name)))
    with pytest.raises(TopologyError, match=f"'words': stream name.*{message}"):
        verify(_topology(_spout(outputs=(StreamDefinition(name, ()),))))


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (_topology(_spout("stmgr")), "'stmgr' is also the name of an engine process"),
        (_topology(), "'wordcount' has no spout"),
        (_topology(_bolt()), "'wordcount' has no spout"),
        (_topology(_spout(), _spout()), "two components have the name 'words'"),
        (_topology(_spout(outputs=())), "spout 'words' has no outputs"),
        (_topology(_spout(), _bolt(inputs=())), "bolt 'count' has no inputs"),
        (_topology(_spout(inputs=(_input(),))), "spout 'words' has inputs"),
        (_topology(_spout(runtime="jvm")), "'words': runtime 'jvm' is not supported; supported: 'python'"),
        (_topology(_spout(entry="Words")), "entry 'Words' is not of the form 'module:Class'"),
        (_topology(_spout(entry="m:f.<locals>.Words")), "top level of a module"),
        (_topology(_spout(outputs=(StreamDefinition("a", ()),) * 2)), "two output streams have the name 'a'"),
        (_topology(_spout(outputs=(StreamDefinition("a", ("x", "x")),))), "two fields have the name 'x'"),
        (_topology(_spout(outputs=(StreamDefinition("a", ("",)),))), "a field has an empty name"),
    ],
)
def test_refuses_an_incomplete_component(topology: TopologyDefinition, message: str) -> None:
    """Without this check, an instance would fail after the command has returned."""
    with pytest.raises(TopologyError, match=message):
        verify(topology)


@pytest.mark.parametrize(
    ("subscription", "message"),
    [
        (_input("wrods"), r"'wrods' \(nearest: 'words'\); known: 'count', 'words'"),
        (_input(stream="defualt"), r"no stream 'defualt' \(nearest: 'default'\); known: 'default'"),
        (
            _input(grouping=GroupingDefinition(GroupingKind.FIELDS, ("wrod",))),
            r"no field 'wrod' \(nearest: 'word'\); known: 'line', 'word'",
        ),
        (_input(grouping=GroupingDefinition(GroupingKind.FIELDS)), "names no field; known: 'line', 'word'"),
        (_input(grouping=GroupingDefinition(GroupingKind.PARTIAL_KEY)), "partial_key grouping names no field"),
        (
            _input(grouping=GroupingDefinition(GroupingKind.FIELDS, ("word", "word"))),
            "the grouping names a field twice: word, word",
        ),
        (_input(grouping=GroupingDefinition(GroupingKind.SHUFFLE, ("word",))), "takes no fields, but has 'word'"),
        (_input(grouping=GroupingDefinition(GroupingKind.CUSTOM, entry="Mine")), "custom grouping 'Mine' is not of"),
        (_input(grouping=GroupingDefinition(GroupingKind.ALL, entry="a:B")), "has no entry, but names 'a:B'"),
    ],
)
def test_refuses_an_invalid_input(subscription: InputDefinition, message: str) -> None:
    """The message begins with the bolt and its input, and names the nearest known name."""
    with pytest.raises(TopologyError, match=f"^bolt 'count', input .*{message}"):
        verify(_topology(_spout(), _bolt("count", subscription)))


def test_refuses_two_subscriptions_to_one_stream() -> None:
    """Each tuple would arrive twice."""
    with pytest.raises(TopologyError, match="subscribes to the stream twice"):
        verify(_topology(_spout(), _bolt("count", _input(), _input(grouping=_FIELDS))))


@pytest.mark.parametrize("parallelism", [0, -3, True, 2.0])
def test_refuses_an_invalid_parallelism(parallelism: object) -> None:
    """Zero, negative numbers and other types are refused."""
    with pytest.raises(TopologyError, match=rf"'words': topology\.component\.parallelism {parallelism} is not"):
        verify(_topology(_spout(parallelism=parallelism)))


def test_refuses_too_many_instances() -> None:
    """The limit holds for one component and for the sum of all."""
    with pytest.raises(TopologyError, match=r"'words': .* 10001 exceeds the limit of 10000 instances"):
        verify(_topology(_spout(parallelism=10_001)))
    with pytest.raises(TopologyError, match=r"the sum of .*, 10002, exceeds the limit of 10000"):
        verify(_topology(_spout(parallelism=5_001), _spout("more", parallelism=5_001)))


def test_refuses_more_instances_than_key_groups() -> None:
    """An instance without a key group would never get a tuple. Groupings without keys have no such limit."""
    config: dict[str, object] = {"topology.key.groups": 8}
    verify(_topology(_spout(), _bolt("count", _input(), parallelism=9), config=config))
    with pytest.raises(TopologyError, match=r"parallelism 9 exceeds topology\.key\.groups, 8 key groups"):
        verify(_topology(_spout(), _bolt(parallelism=9), config=config))


def test_refuses_a_cycle_and_names_it() -> None:
    """In a cycle, streams never end and tuple trees never complete."""
    with pytest.raises(TopologyError, match="a cycle, a -> b -> a;"):
        verify(_topology(_spout(), _bolt("a", _input(), _input("b")), _bolt("b", _input("a"))))
    with pytest.raises(TopologyError, match="a cycle, a -> a;"):
        verify(_topology(_spout(), _bolt("a", _input(), _input("a"))))


def test_refuses_an_unknown_reliability() -> None:
    """The message names the nearest mode."""
    verify(_topology(_spout(), config={"topology.reliability.mode": "EFFECTIVELY_ONCE"}))
    with pytest.raises(TopologyError, match=r"'ATLEAST' is unknown \(nearest: 'ATLEAST_ONCE'\)"):
        verify(_topology(_spout(), config={"topology.reliability.mode": "ATLEAST"}))


LETTERS = InputDefinition("words", "dead_letters", _SHUFFLE)


def test_dead_letters_need_a_spout_that_replays() -> None:
    """A bolt that subscribes to them would wait for nothing."""
    spout = with_dead_letters(_spout())
    with pytest.raises(TopologyError, match=r"'count': its input words:dead_letters stays empty.*attempts is not set"):
        verify(_topology(spout, _bolt("count", LETTERS)))
    replays: dict[str, object] = {"topology.replay.attempts": 3}
    once: dict[str, object] = {"topology.reliability.mode": "ATLEAST_ONCE"}
    verify(_topology(spout, _bolt("count", LETTERS), config={**replays, **once}))
    verify(_topology(replace(spout, config=replays), _bolt("count", LETTERS), config=once))
    own = _spout(outputs=(StreamDefinition("dead_letters", ("v",)),))
    assert with_dead_letters(own) == own
    verify(_topology(own, _bolt("count", LETTERS)))


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "EFFECTIVELY_ONCE"])
def test_replays_need_roots(mode: str) -> None:
    """The other modes track none."""
    config: dict[str, object] = {"topology.replay.attempts": 3, "topology.reliability.mode": mode}
    with pytest.raises(TopologyError, match=f"attempts is 3, and nothing is replayed with .* {mode}; set ATLEAST_ONCE"):
        verify(_topology(_spout(), _bolt(), config=config))


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [("ATMOST_ONCE", "set EFFECTIVELY_ONCE, or remove it"), ("ATLEAST_ONCE", "set topology.replay.attempts instead")],
)
def test_letters_of_bolts_need_checkpoints_effectively_once(mode: str, remedy: str) -> None:
    """At least once the spout has the record; at most once no checkpoint would hold it."""
    kept: dict[str, object] = {"topology.on.error": "dead_letter"}
    with pytest.raises(TopologyError, match=rf"the topology: topology.on.error is dead_letter, .* is {mode}; {remedy}"):
        verify(_topology(_spout(), _bolt(), config={**kept, "topology.reliability.mode": mode}))
    with pytest.raises(TopologyError, match=r"count: topology\.on\.error is dead_letter"):
        verify(_topology(_spout(), replace(_bolt(), config=kept), config={"topology.reliability.mode": mode}))
    verify(_topology(_spout(), _bolt(), config={**kept, "topology.reliability.mode": "EFFECTIVELY_ONCE"}))
    replays: dict[str, object] = {"topology.replay.attempts": 3, "topology.reliability.mode": "EFFECTIVELY_ONCE"}
    with pytest.raises(TopologyError, match=r"remove the key and set topology\.on\.error: dead_letter"):
        verify(_topology(_spout(), _bolt(), config=replays))

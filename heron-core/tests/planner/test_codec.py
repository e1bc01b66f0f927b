"""Plans survive the way through a store, and what is not a plan is refused with its place."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.errors import StateError
from heron.planner.assemble import physical_plan
from heron.planner.codec import (
    decode_packing_plan,
    decode_physical_plan,
    decode_topology,
    encode,
    fingerprint,
)
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import StreamManagerLocation, TopologyState

_TOPOLOGY = TopologyDefinition(
    "wörter",
    (
        ComponentDefinition(
            "words",
            ComponentKind.SPOUT,
            "m:W",
            1,
            (StreamDefinition("default", ("word",)),),
            config={"path": "/x", "list": [1, 2.5, None, True, {"deep": "value"}], "large": 2**63},
        ),
        ComponentDefinition(
            "count",
            ComponentKind.BOLT,
            "m:C",
            1,
            (),
            (
                InputDefinition(
                    "words",
                    "default",
                    GroupingDefinition(GroupingKind.CUSTOM, ("word",), "m:G", {"arguments": [1]}),
                ),
            ),
        ),
    ),
    {"topology.stmgrs": 1},
)
_ROOM = Resource(1.0, 1 << 30, 1 << 40)
_PACKING = PackingPlan(
    "id",
    (ContainerPlan(1, (InstancePlan("words", 1, 0, _ROOM), InstancePlan("count", 2, 0, Resource(0.1, 5, 6))), _ROOM),),
    9,
)
_PHYSICAL = physical_plan(
    _PACKING,
    _TOPOLOGY,
    [StreamManagerLocation(1, 4, "ipc://x", "h", 12)],
    version=1,
    epoch=2,
    topology_id="t-1",
    state=TopologyState.PAUSED,
)
_DECODERS: list[Callable[[bytes, str], object]] = [decode_topology, decode_packing_plan, decode_physical_plan]


def test_gives_back_what_it_was_given() -> None:
    """Equal in every field, enums and nested configuration included."""
    assert decode_topology(encode(_TOPOLOGY), "here") == _TOPOLOGY
    assert decode_packing_plan(encode(_PACKING), "here") == _PACKING
    assert decode_physical_plan(encode(_PHYSICAL), "here") == _PHYSICAL


def test_equal_values_have_equal_bytes() -> None:
    """A store that compares bytes must not see a change where there is none."""
    one = TopologyDefinition("t", (), {"a": 1, "b": 2})
    other = TopologyDefinition("t", (), {"b": 2, "a": 1})
    assert encode(one) == encode(other)


def test_says_its_format_in_plain_json() -> None:
    """Other languages and people read the nodes too."""
    envelope = msgspec.json.decode(encode(_TOPOLOGY))
    assert (envelope["format"], envelope["kind"]) == (1, "topology")
    assert envelope["value"]["components"][0]["kind"] == "spout"


def test_skips_fields_it_does_not_know() -> None:
    """A newer version may add some within a format, and the older one still reads."""
    envelope = msgspec.json.decode(encode(_PACKING))
    envelope["value"]["colour"] = envelope["signature"] = "green"
    assert decode_packing_plan(msgspec.json.encode(envelope), "here") == _PACKING


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"format": 1}', b"{}" * 2, b"[" * 100_000, b'{"format":"1"}']
)
@pytest.mark.parametrize("decode", _DECODERS)
def test_refuses_what_is_garbled(decode: Callable[[bytes, str], object], data: bytes) -> None:
    """A cut file, an empty node, a wrong one: always the same class of error, with the place in front."""
    with pytest.raises(StateError, match=r"^node plans/x: not a readable"):
        decode(data, "node plans/x")


def test_every_cut_of_a_plan_is_refused() -> None:
    """However much of a write survived, half a plan is never taken for a whole one."""
    data = encode(_PHYSICAL)
    for end in range(len(data)):
        with pytest.raises(StateError):
            decode_physical_plan(data[:end], "here")


def test_names_the_path_of_a_wrong_value() -> None:
    """So that a person can find it in the node."""
    data = encode(_PACKING).replace(b'"task_id":1', b'"task_id":"one"')
    with pytest.raises(StateError, match=r"expected `int`, got `str` - at `\$\.containers\[0\]\.instances\[0\]"):
        decode_packing_plan(data, "here")


def test_refuses_another_kind_and_another_format() -> None:
    """The two mistakes that a person can make with sound data have messages of their own."""
    with pytest.raises(StateError, match="here: holds a packing plan, not a topology"):
        decode_topology(encode(_PACKING), "here")
    newer = encode(_PACKING).replace(b'"format":1', b'"format":2')
    with pytest.raises(StateError, match="is of format 2, this version reads 1; use the version"):
        decode_packing_plan(newer, "here")


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}])
def test_refuses_to_write_what_json_has_no_form_for(value: object) -> None:
    """Found where it is written, not by the next reader."""
    with pytest.raises(StateError, match="topology cannot be written as JSON"):
        encode(TopologyDefinition("t", (), {"key": value}))


def test_a_fingerprint_follows_the_content() -> None:
    """Plans of the same content have the same id, so that an update can name the plan it starts from."""
    containers = _PACKING.containers
    assert fingerprint(containers, 9) == fingerprint(containers, 9) != fingerprint(containers, 10)

"""Topologies and plans as documents: round trips, and the refusal of anything else."""

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
from heron.errors import NewerFormatError, StateError
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import StreamManagerLocation, TopologyState, physical_plan
from heron.state_nodes.plans import (
    decode_packing_plan,
    decode_physical_plan,
    decode_topology,
    encode_plan,
)

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


def test_round_trip() -> None:
    """Every field survives, enums and nested configuration included."""
    assert decode_topology(encode_plan(_TOPOLOGY), "here") == _TOPOLOGY
    assert decode_packing_plan(encode_plan(_PACKING), "here") == _PACKING
    assert decode_physical_plan(encode_plan(_PHYSICAL), "here") == _PHYSICAL


def test_equal_values_have_equal_bytes() -> None:
    """A state manager may compare bytes to detect changes."""
    one = TopologyDefinition("t", (), {"a": 1, "b": 2})
    other = TopologyDefinition("t", (), {"b": 2, "a": 1})
    assert encode_plan(one) == encode_plan(other)


def test_the_envelope_is_plain_json_with_format_and_kind() -> None:
    """People and programs in other languages read the nodes too."""
    envelope = msgspec.json.decode(encode_plan(_TOPOLOGY))
    assert (envelope["format"], envelope["kind"]) == (1, "topology")
    assert envelope["value"]["components"][0]["kind"] == "spout"


def test_unknown_fields_are_ignored() -> None:
    """A newer version may add fields within a format."""
    envelope = msgspec.json.decode(encode_plan(_PACKING))
    envelope["value"]["colour"] = envelope["signature"] = "green"
    assert decode_packing_plan(msgspec.json.encode(envelope), "here") == _PACKING


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"format": 1}', b"{}" * 2, b"[" * 100_000, b'{"format":"1"}']
)
@pytest.mark.parametrize("decode", _DECODERS)
def test_garbled_data_is_refused(decode: Callable[[bytes, str], object], data: bytes) -> None:
    """An empty, cut or foreign node raises one class of error, and the message starts with the place."""
    with pytest.raises(StateError, match=r"^node plans/x: not a readable"):
        decode(data, "node plans/x")


def test_a_document_without_format_has_format_1() -> None:
    """As for all state nodes."""
    envelope = msgspec.json.decode(encode_plan(_PACKING))
    del envelope["format"]
    assert decode_packing_plan(msgspec.json.encode(envelope), "here") == _PACKING


def test_every_cut_of_a_plan_is_refused() -> None:
    """A part of a plan is never read as a whole plan."""
    data = encode_plan(_PHYSICAL)
    for end in range(len(data)):
        with pytest.raises(StateError):
            decode_physical_plan(data[:end], "here")


def test_the_message_names_the_path_of_a_wrong_value() -> None:
    """A person can find the value in the node."""
    data = encode_plan(_PACKING).replace(b'"task_id":1', b'"task_id":"one"')
    with pytest.raises(StateError, match=r"expected `int`, got `str` - at `\$\.containers\[0\]\.instances\[0\]"):
        decode_packing_plan(data, "here")


def test_another_kind_and_a_newer_format_are_refused() -> None:
    """Each of the two has its own message, because the data itself is intact."""
    with pytest.raises(StateError, match="here: holds a packing plan, not a topology"):
        decode_topology(encode_plan(_PACKING), "here")
    newer = encode_plan(_PACKING).replace(b'"format":1', b'"format":2')
    expected = "here: the packing plan has format 2, and this version of heron-core reads formats up to 1; upgrade"
    with pytest.raises(NewerFormatError, match=expected):
        decode_packing_plan(newer, "here")


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}])
def test_a_value_without_json_form_is_refused_when_it_is_written(value: object) -> None:
    """The writer gets the error, not the next reader."""
    with pytest.raises(StateError, match="topology cannot be written as JSON"):
        encode_plan(TopologyDefinition("t", (), {"key": value}))

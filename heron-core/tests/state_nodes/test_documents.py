"""The rules that the documents of all state nodes follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from heron.errors import NewerFormatError, StateError
from heron.ipc.documents.status import TopologyStatus
from heron.ipc.keys import new_keys
from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis, Expectation, Subject
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state, encode_execution_state
from heron.state_nodes.health_records import HealthRecords, decode_health_records, encode_health_records
from heron.state_nodes.report import LastReport, decode_report, encode_report
from heron.state_nodes.scheduler_location import (
    SchedulerJob,
    SchedulerLocation,
    decode_scheduler_location,
    encode_scheduler_location,
    with_job,
)
from heron.state_nodes.tmanager_location import (
    TManagerLocation,
    decode_tmanager_location,
    encode_tmanager_location,
)
from heron.state_nodes.topology_keys import decode_keys, encode_keys

RUN = ExecutionState("wc", "wc-1", 1.5, "me", "here", "local", "file:x", "/run", "/log", attached=False, role="ads")
JOB = SchedulerJob("app-1", {"Spark UI": "http://here:4040"})
KEYS = new_keys()
LOCATION = TManagerLocation("tcp://here:1", "wc-1", 7, "here", 2)
REPORT = LastReport(TopologyStatus("wc", "wc-1", "killed", 10.0, error="why", ended_at_s=20.0), RUN, 2, 4)


DECISION = Decision(
    3,
    10.0,
    "ds2",
    Diagnosis("under-provisioned", Subject("split"), 0.8, ("500%",)),
    Action(
        ActionKind.UPDATE,
        "split 1 -> 6",
        parallelism={"split": 6},
        before={"split": 1},
        expected=Expectation("source-rate", Subject("lines"), at_least=900.0),
    ),
    DecisionState.STARTED,
    "why",
    "plan-1",
    "plan-2",
)
HEALTH = HealthRecords("wc-1", "act", paused=True, problem="none", decisions=(DECISION,))


@dataclass(frozen=True)
class Node:
    """One kind of node: its name in messages, a value, its document, and the reader."""

    name: str
    value: object
    data: bytes
    decode: Callable[[bytes, str], object]


NODES = [
    Node("executionstate", RUN, encode_execution_state(RUN), decode_execution_state),
    Node("schedulers", SchedulerLocation(RUN), encode_scheduler_location(RUN), decode_scheduler_location),
    Node(
        "schedulers",
        SchedulerLocation(RUN, JOB),
        with_job(encode_scheduler_location(RUN), "wc", "wc-1", JOB),
        decode_scheduler_location,
    ),
    Node("tmanagers", LOCATION, encode_tmanager_location(LOCATION), decode_tmanager_location),
    Node("keys", KEYS, encode_keys(KEYS), decode_keys),
    Node("health", HEALTH, encode_health_records(HEALTH), decode_health_records),
    Node("reports", REPORT, encode_report(REPORT), decode_report),
]

each_node = pytest.mark.parametrize("node", NODES, ids=lambda node: type(node.value).__name__)


def changed(data: bytes, **fields: object) -> bytes:
    """The document with these fields added or replaced."""
    return msgspec.json.encode({**msgspec.json.decode(data, type=dict[str, object]), **fields})


@each_node
def test_round_trip(node: Node) -> None:
    """Every field survives, and the document has its format."""
    assert node.decode(node.data, "wc") == node.value
    assert msgspec.json.decode(node.data, type=dict[str, object])["format"] == 1


@each_node
def test_a_document_without_format_has_format_1(node: Node) -> None:
    """Versions of heron-core that wrote no format wrote format 1."""
    document = msgspec.json.decode(node.data, type=dict[str, object])
    del document["format"]
    assert node.decode(msgspec.json.encode(document), "wc") == node.value


@each_node
def test_a_newer_format_is_refused(node: Node) -> None:
    """The reader checks only the format, and the message has the remedy."""
    expected = f"node {node.name}/wc: .* has format 2, and this version .* reads formats up to 1; upgrade heron-core"
    for data in (changed(node.data, format=2), b'{"format": 2, "topology": 7}'):
        with pytest.raises(NewerFormatError, match=expected):
            node.decode(data, "wc")


@each_node
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b"\xff", b"{]", b'{"format": "1"}', b'{"format": 0}', b"[" * 10**5]
)
def test_a_garbled_document_is_refused(node: Node, data: bytes) -> None:
    """The message names the node and the remedy."""
    with pytest.raises(StateError, match=f"^node {node.name}/wc: .*cannot be read: .*`heron kill wc` removes it"):
        node.decode(data, "wc")


@each_node
def test_a_torn_document_is_refused(node: Node) -> None:
    """Every prefix is refused, wherever the write stopped."""
    for end in range(len(node.data)):
        with pytest.raises(StateError):
            node.decode(node.data[:end], "wc")


@each_node
def test_unknown_fields_are_ignored(node: Node) -> None:
    """A newer version may add fields within a format."""
    assert node.decode(changed(node.data, colour="green"), "wc") == node.value


def test_the_job_of_a_scheduler_keeps_unknown_fields() -> None:
    """A scheduler changes a node that the command wrote, perhaps a command of a newer version."""
    data = changed(encode_scheduler_location(RUN), colour=["green"])
    found = with_job(with_job(data, "wc", "wc-1", SchedulerJob("app-0")), "wc", "wc-1", JOB)
    assert msgspec.json.decode(found, type=dict[str, object])["colour"] == ["green"]
    assert decode_scheduler_location(found, "wc") == SchedulerLocation(RUN, JOB)


def test_a_scheduler_location_reads_as_an_execution_state() -> None:
    """Older readers take the node for a copy of the execution state."""
    assert decode_execution_state(with_job(encode_scheduler_location(RUN), "wc", "wc-1", JOB), "wc") == RUN


def test_an_execution_state_of_another_topology_is_refused() -> None:
    """Somebody copied the node by hand."""
    with pytest.raises(StateError, match="node executionstate/other: belongs to topology 'wc'"):
        decode_execution_state(encode_execution_state(RUN), "other")


def test_garbled_keys_are_refused_without_being_shown() -> None:
    """A message may reach logs and screens, and the node may still hold a secret."""
    member = {"public": KEYS.member.public, "secret": "hush"}
    with pytest.raises(StateError, match="keys of topology 'wc' cannot be read") as caught:
        decode_keys(changed(encode_keys(KEYS), member=member), "wc")
    assert "hush" not in str(caught.value)

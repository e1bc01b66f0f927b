"""Peers that have no key of a topology, or the wrong one, at every TCP port of every process; and the read-only key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from secret_places import keys_of
from strangers import GREETING_BYTES, STRANGERS, Port, answer_to, listening_ports, proving, recorded_handshake

from heron.driver_kit.loading import open_driver
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metric_names import CONNECTIONS_REFUSED
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.keys import ClientKind, KeyPair, TopologyKeys, new_keys
from heron.ipc.query import TManagerClient
from heron.ipc.socket import SocketContext
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.tmanager_location import decode_tmanager_location

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_GUARDED = frozenset({"heron.tmanager.main", "heron.stmgr.main"})
_HTTP = frozenset({"heron.metricsmgr.main"})  # the page of the sink `prometheus`, which SECURITY.md says is open
_QUESTIONS = frozenset(
    {
        "status_request",
        "metrics_request",
        "traces_request",
        "stack_request",
        "profile_request",
        "memory_request",
        "tuples_request",
        "capture_request",
    }
)
_WELCOME_BYTES = 2 + 168  # CURVE's second command: a fresh cookie for the peer, and nothing about a topology (RFC 26)
_QUESTION = control_frame(Envelope(status_request=pb.StatusRequest(request_id=1)))
_ANSWER_S = 20.0
_NOBODY = "is not for a topology manager"


def test_strangers_get_nothing_and_change_nothing_at_any_port(sandbox: Sandbox) -> None:
    """One run with every process that listens; each kind of stranger tries each port, and the run counts exactly.

    A read-only key then sends every message that there is, also those that later versions add.
    """
    sinks = '[{driver: file, directory: "${run:logs}"}, {driver: prometheus, host: 127.0.0.1, port: 0}]'
    options = sandbox.write_profile("guarded", f"extends: local\nmetricsink: {sinks}\n")
    run = sandbox.start("steady.py", *options)
    run.until((run.out / "progress").exists, "the first counts")
    keys, endpoint = _keys_and_endpoint(sandbox)
    ports = listening_ports(sandbox.home)
    assert {port.role for port in ports} == _GUARDED | _HTTP
    assert {port.address for port in ports} == {"127.0.0.1"}
    guarded = [port for port in ports if port.role in _GUARDED]
    with TManagerClient(endpoint, keys.connecting_as(ClientKind.READER)) as reader:
        before = reader.status(_ANSWER_S)
        tried = _try_all(guarded, keys)
        run.until(lambda: _refused(reader) >= tried, f"{tried} refusals in the metrics")
        _try_every_message(endpoint, keys, ClientKind.READER, _QUESTIONS)
        after = reader.status(_ANSWER_S)
        assert (after.state, after.plan_version, after.errors) == ("running", before.plan_version, ())
        assert {each.pid for each in after.processes} == {each.pid for each in before.processes}
    for port in ports:
        if port.role in _HTTP:
            _see_only_metrics(port, keys)
    (run.out / "stop").touch()
    report = run.finished()
    assert report.components["count"].executed == report.components["numbers"].emitted > 0
    assert report.components["pass"].failed == 0


def _try_all(ports: list[Port], keys: TopologyKeys) -> Counter[str]:
    """Be every stranger at every port; return how many connections each role has to refuse at least."""
    other = new_keys()
    tried: Counter[str] = Counter()
    for port in ports:
        for name, data in STRANGERS.items():
            assert len(answer_to(port.number, data)) <= GREETING_BYTES, f"{name} at {port}"
        pairs = [other.member, other.control, other.server]
        if port.role == "heron.stmgr.main":
            pairs += [keys.reader, keys.control]  # commands have no business at a stream manager
        for pair in pairs:
            _prove(port, keys.server.public, pair)
        _prove(port, other.server.public, keys.member)  # the key of this topology, for a server of another
        sent, answered = recorded_handshake(port.number, keys.connecting_as(ClientKind.MEMBER), _QUESTION)
        assert b"\x05READY" in answered, f"the true handshake at {port}"
        for replayed in (sent, sent[GREETING_BYTES:], sent[: len(sent) // 2]):
            answer = answer_to(port.number, replayed)
            assert b"READY" not in answer, f"a replayed handshake at {port}"
            assert len(answer) <= GREETING_BYTES + _WELCOME_BYTES
        tried[port.role] += len(STRANGERS) + len(pairs) + 1 + 3
    return tried


def _prove(port: Port, server_public: str, pair: KeyPair) -> None:
    with proving(port.number, server_public, pair, _QUESTION) as (ended, received):
        assert ended(), f"{port} keeps the connection of a stranger"
        assert received() is None


def _refused(reader: TManagerClient) -> Counter[str]:
    rows = reader.metrics("", 0, by_task=True, timeout_s=_ANSWER_S)
    found: Counter[str] = Counter()
    for row in rows:
        if row.name == CONNECTIONS_REFUSED:
            found[f"heron.{row.process.partition('-')[0]}.main"] += int(row.value)
    return found


def _try_every_message(endpoint: str, keys: TopologyKeys, kind: ClientKind, allowed: frozenset[str]) -> None:
    """Send every message of the protocol; all but the allowed ones are refused."""
    refused, bodies = set(), {field.name: field for field in pb.Envelope.DESCRIPTOR.oneofs_by_name["body"].fields}
    context = SocketContext(max_frame_bytes=-1)
    try:
        for name in sorted(bodies.keys() - allowed):
            channel = context.client_of(endpoint, keys=keys.connecting_as(kind))
            envelope = Envelope()
            getattr(envelope, name).SetInParent()
            channel.send(control_frame(envelope))
            assert channel.wait(_ANSWER_S), f"{name} has no answer"
            answer = parse_control(channel.receive() or b"")
            # A topology without checkpoints refuses some messages from anybody, so the reason has to be the key.
            if "reader key" in (reason := answer.refused.reason) or "read-only key" in reason or _NOBODY in reason:
                refused.add(name)
            channel.close()
    finally:
        context.close()
    assert refused == bodies.keys() - allowed


def _see_only_metrics(port: Port, keys: TopologyKeys) -> None:
    """The page of metrics is open, so it has no secret, and answers nothing else."""
    page = answer_to(port.number, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").decode()
    assert "heron_" in page
    for pair in (keys.server, keys.member, keys.control, keys.reader):
        assert pair.secret not in page
    for data in (STRANGERS["null"], STRANGERS["ones"], b"POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n"):
        assert b"heron_" not in answer_to(port.number, data)


def _keys_and_endpoint(sandbox: Sandbox) -> tuple[TopologyKeys, str]:
    root: dict[str, object] = {"root": str(sandbox.home / ".heron" / "state")}
    state = open_driver(DriverRef("statemgr", "localfs", _DRIVER, root), StateManager)
    try:
        location = state.get(NodeKind.TMANAGER_LOCATION, "steady")
        assert location is not None
        return keys_of(state, "steady"), decode_tmanager_location(location.value, "steady").endpoint
    finally:
        state.close()

"""The bytes of wire version 1, pinned: a change of one of these files needs a new wire version.

``PYTHONPATH=heron-core/tests python heron-core/tests/wire/test_golden.py`` writes the missing files; files that exist
stay as they are.
"""

from __future__ import annotations

import datetime
import math
import pickle
import struct
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from heron.errors import RemoteProtocolError
from heron.instance.acks.tracked_batch import tracked_batch
from heron.instance.codec.batch_codec import decode_columns
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metrics_table import MetricsRow, decode_metrics, encode_metrics, table_of
from heron.ipc.documents.status import decode_status, encode_status
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    WIRE_VERSION,
    Encoding,
    FrameKind,
    Marker,
    OptionTag,
    SegmentHead,
    SegmentKind,
    frame_header,
    kept_option,
    kept_probability,
    marker_segment,
    option,
    parse_frame_header,
    parse_segment,
    retargeted,
    segment,
    segment_routes,
)
from heron.ipc.frames.tracking import RootOutcome, ack_range, cause_lines, new_roots_derived, parse_cause, parse_settled
from heron.ipc.frames.tracking_arrays import (
    acks,
    edge_keys_of_range,
    fails,
    new_roots_listed,
    parse_ack,
    parse_fail,
    parse_new_roots,
    settled,
)
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan, decode_topology, encode_plan
from parts.pinned_plans import (
    PACKING,
    PACKING_WITH_PACKAGES,
    PHYSICAL,
    PHYSICAL_WITH_CHECKPOINTS,
    PHYSICAL_WITH_CODE,
    PHYSICAL_WITH_KEYS,
    PHYSICAL_WITH_REGIONS,
    PHYSICAL_WITH_UNDIVIDED,
    PHYSICAL_WITH_UPDATE,
    TOPOLOGY,
)
from parts.pinned_statuses import FORMER_STATUSES, STATUS_WITH_CODE
from parts.pinned_taken_frames import TAKEN_FRAMES
from parts.pinned_task_messages import TASK_MESSAGES, TRACED_SEGMENT

GOLDEN = Path(__file__).parent / "golden"
SESSION = 0x01020304

TASK_REPORT = pb.TaskReport(
    task_id=5, incarnation=65537, phase=pb.TASK_PHASE_FAILED, error="no", totals=pb.MetricsPublish(topology="words")
)
METRICS = pb.MetricsPublish(
    topology="words",
    container_id=2,
    process="count-5",
    incarnation=65537,
    component="count",
    task_id=5,
    at_s=1_700_000_000.5,
    metrics=[
        pb.Metric(
            name="emit-count",
            kind="counter",
            unit="tuples",
            value=12.0,
            labels=[pb.Label(name="stream", value="default")],
        ),
        pb.Metric(
            name="execute-latency",
            kind="histogram",
            unit="s",
            histogram=pb.Histogram(bounds=[0.1, 1.0], counts=[3, 2, 1], total=4.25),
        ),
    ],
    events=[
        pb.Event(
            id="e-1",
            name="user-error",
            at_s=1_700_000_000.25,
            subject="task-5",
            cause="e-0",
            attributes=[pb.Label(name="message", value="no")],
        )
    ],
)

CONTROL: dict[str, Envelope] = {
    body_of(envelope): envelope
    for envelope in (
        Envelope(
            instance_hello=pb.InstanceHello(
                task_id=5, incarnation=65537, endpoint="ipc:///run/c2/i5-65537-1", pid=4711, wire_version=1
            )
        ),
        Envelope(
            instance_welcome=pb.InstanceWelcome(session=SESSION, window_bytes=2**20, grant_bytes=2**20, ended=True)
        ),
        Envelope(epoch=7, plan=pb.Plan(version=3, document=b'{"format":1}')),
        Envelope(task_report=TASK_REPORT),
        Envelope(epoch=7, task_report_seen=pb.TaskReportSeen(task_id=5, phase=pb.TASK_PHASE_ENDED)),
        Envelope(epoch=7, stop=pb.Stop(reason="the topology is finished")),
        Envelope(pressure=pb.Pressure(task_id=5, container_id=2, on=True, buffered_bytes=9_000_000)),
        Envelope(peer_hello=pb.PeerHello(container_id=1, incarnation=65536, session=3, wire_version=1)),
        Envelope(peer_welcome=pb.PeerWelcome(container_id=2, incarnation=65537, session=3, window_bytes=2**20)),
        Envelope(peer_end=pb.PeerEnd(session=3)),
        Envelope(loss=pb.Loss(task_id=5)),
        Envelope(
            stmgr_hello=pb.StmgrHello(
                container_id=2,
                incarnation=65537,
                endpoint="ipc:///run/c2/p65537",
                host="here",
                pid=4712,
                tasks=[TASK_REPORT],
            )
        ),
        Envelope(heartbeat=pb.Heartbeat(container_id=2, incarnation=65537)),
        Envelope(executor_hello=pb.ExecutorHello(container_id=2, attempt=1, pid=4710)),
        Envelope(
            process_report=pb.ProcessReport(
                container_id=2,
                process="count-5",
                task_id=5,
                incarnation=65537,
                phase=pb.PROCESS_PHASE_DIED,
                reason="signal 9",
                restarts=1,
            )
        ),
        Envelope(location_request=pb.LocationRequest(process="stmgr")),
        Envelope(tmanager_location=pb.TManagerLocation(endpoint="ipc:///run/c0/t65536", epoch=7)),
        Envelope(metrics_publish=METRICS),
        Envelope(status_request=pb.StatusRequest(request_id=9)),
        Envelope(epoch=7, status_reply=pb.StatusReply(request_id=9, document=b"{}")),
        Envelope(container_tasks=pb.ContainerTasks(document=b"[]")),
        Envelope(begin_update=pb.BeginUpdate(request_id=12, base="rr-1", document=b"{}")),
        Envelope(take_checkpoint=pb.TakeCheckpoint(request_id=14)),
        *TASK_MESSAGES,
        Envelope(
            checkpoint_report=pb.CheckpointReport(
                task_id=5,
                incarnation=65537,
                restores=1,
                number=7,
                phase=pb.CHECKPOINT_PHASE_SAVED,
                snapshot=b"{}",
            )
        ),
        Envelope(withdraw_update=pb.WithdrawUpdate(request_id=13, reason="no room")),
        Envelope(change_config=pb.ChangeConfig(request_id=14, document=b'{"count":{"limit":7}}')),
        Envelope(metrics_request=pb.MetricsRequest(request_id=11, component="count", task_id=5, by_task=True)),
        Envelope(epoch=7, metrics_reply=pb.MetricsReply(request_id=11, document=b"[]")),
        Envelope(change_state=pb.ChangeState(request_id=10, state="paused")),
        Envelope(epoch=7, done=pb.Done(request_id=10)),
        Envelope(epoch=7, refused=pb.Refused(request_id=10, reason="no")),
    )
}

TUPLES = segment(
    (6, 9),
    b"payload",
    kind=SegmentKind.TUPLES,
    encoding=Encoding.MSGPACK,
    stream=2,
    plan_version=3,
    source_task=5,
    incarnation=65537,
    rows=2,
    options=option(OptionTag.ROOTS, bytes(range(16)))
    + option(OptionTag.KEYS, bytes(range(16, 32)))
    + option(OptionTag.EVENT_TIMES, bytes(range(32, 48)))
    + option(OptionTag.BATCH_KEY, bytes(range(48, 56)))
    + option(999, b"?"),
)

TUPLES_OF_A_UNIT = segment(
    (6,),
    b"payload",
    kind=SegmentKind.TUPLES,
    encoding=Encoding.ARROW,
    stream=1,
    plan_version=3,
    source_task=5,
    incarnation=65537,
    rows=50_000,
    options=option(OptionTag.BATCH_KEY, b"12345678")
    + option(OptionTag.ROOT_BASE, b"8765432\0")
    + option(OptionTag.UNIT, b""),
)

TUPLES_KEPT = segment(
    (6,),
    b"payload",
    kind=SegmentKind.TUPLES,
    encoding=Encoding.PICKLE,
    stream=1,
    plan_version=3,
    source_task=5,
    incarnation=65537,
    rows=2,
    options=kept_option(0.125),
)


def marker(kind: Marker, value: int) -> bytes:
    return marker_segment((6, 9), kind, value, plan_version=3, source_task=5, incarnation=65537)


MARKERS = {
    Marker.END: 0,
    Marker.PLAN: 4,
    Marker.CHECKPOINT: 17,
    Marker.WATERMARK: -1_700_000_000_000_000,
    Marker.IDLE: 1_700_000_000_000_001,
}
FRAMES: dict[str, bytes] = {
    "frame-data-empty": frame_header(FrameKind.DATA, SESSION, 2**40 + 1),
    "frame-data-two-segments": frame_header(FrameKind.DATA, SESSION, 8) + TUPLES + marker(Marker.END, 0),
    **TAKEN_FRAMES,
    "segment-tuples": TUPLES,
    "segment-tuples-retargeted": bytes(retargeted(TUPLES, (9,))),
    "segment-tuples-unit": TUPLES_OF_A_UNIT,
    "segment-traced": TRACED_SEGMENT,
    "segment-tuples-kept": TUPLES_KEPT,
    "segment-no-destination": segment(
        (),
        b"",
        kind=SegmentKind.TUPLES,
        encoding=Encoding.NONE,
        stream=0,
        plan_version=0,
        source_task=0,
        incarnation=0,
        rows=0,
    ),
} | {f"marker-{kind.name.lower()}": marker(kind, value) for kind, value in MARKERS.items()}

METRICS_TABLE = (
    MetricsRow("count", 3, "count-3", "execute-count", "counter", "tuples", 12.0, {"stream": "default"}, 4.0),
    MetricsRow("count", 3, "count-3", "execute-latency", "histogram", "s", 12.0, {}, 4.0, 0.001, 0.002),
    MetricsRow("", 0, "stmgr-1", "resident-bytes", "gauge", "bytes", 3e7),
)
_ROOTS = np.array([(5 << 48) | 7, (5 << 48) | 9, (6 << 48) | 7], dtype=np.uint64)
_XORS = np.array([1, 2**63, 3], dtype=np.uint64)
_CAUSED = np.append(_ROOTS, np.uint64((5 << 48) | 11))
_TEXTS = (b'"first"', b'"second"', b'"first"', b'"second"')
_CAUSES = [(b'{"component":"count","task_id":3}', text) for text in _TEXTS]
TRACKING: dict[str, bytes] = {
    "roots-derived": new_roots_derived(5, 1000, 2**63 + 1, 3, (6, 9)),
    "roots-listed": b"".join(new_roots_listed(5, 1000, _XORS)),
    "ack-derived": ack_range((5 << 48) | 1000, 2**63 + 1, 6, 3),
    "ack-listed": b"".join(acks(_ROOTS, _XORS)),
    "fail": b"".join(fails(_ROOTS)),
    "cause": b"".join([*fails(_CAUSED, _CAUSES)][::2]),
    "settled-derived": b"".join(settled(5, RootOutcome.COMPLETE, np.array([7, 8, 9]))),
    "settled-listed": b"".join(settled(5, RootOutcome.EXPIRED, np.array([9, 7]))),
    "edge-keys": b"".join(edge_keys_of_range(2**63 + 1, 4, task).tobytes() for task in (6, 9)),
}
DOCUMENTS: dict[str, bytes] = {
    "topology": encode_plan(TOPOLOGY),
    "packing-plan-with-packages": encode_plan(PACKING_WITH_PACKAGES),
    "physical-plan-with-code": encode_plan(PHYSICAL_WITH_CODE),
    "status-with-code": encode_status(STATUS_WITH_CODE),
    "metrics-table-of-series": encode_metrics(table_of(METRICS_TABLE)),
}

COLUMNS: list[list[object]] = [
    ["a", "ü", None, True],
    [1, -(2**70), 1.5, b"\x00"],
    [Decimal("1.20"), datetime.date(2024, 2, 29), ("x", 1), [{"k": "v"}]],
]

FILES: dict[str, bytes] = (
    {f"control-{name.replace('_', '-')}.bin": control_frame(each, SESSION) for name, each in CONTROL.items()}
    | {f"{name}.bin": data for name, data in FRAMES.items()}
    | {f"tracking-{name}.bin": data for name, data in TRACKING.items()}
    | {f"{name}.json": data for name, data in DOCUMENTS.items()}
)


FOR_READING = (
    *(f"{name}.json" for name in FORMER_STATUSES),
    "metrics-table.json",
    "packing-plan.json",
    "compressed.bin",  # other versions of zlib may write other bytes
    "payload-pickle.bin",
    "physical-plan-with-checkpoints.json",
    "physical-plan-with-keys.json",
    "physical-plan-with-regions.json",
    "physical-plan-with-undivided.json",
    "physical-plan-with-update.json",
    "physical-plan.json",
)


def read(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", sorted(FILES))
def test_this_version_writes_the_pinned_bytes(name: str) -> None:
    """This holds for every supported interpreter and protobuf runtime."""
    assert FILES[name] == read(name)


def test_every_file_has_a_sample_and_every_message_has_a_file() -> None:
    """The bytes of a message without a file could change."""
    assert {path.name for path in GOLDEN.iterdir()} == {*FILES, *FOR_READING}
    assert set(CONTROL) == {field.name for field in Envelope.DESCRIPTOR.oneofs_by_name["body"].fields}


@pytest.mark.parametrize("name", sorted(CONTROL))
def test_control_messages_decode(name: str) -> None:
    """Every field equals the written one."""
    frame = read(f"control-{name.replace('_', '-')}.bin")
    assert parse_frame_header(frame) == (FrameKind.CONTROL, SESSION, 0)
    assert parse_control(frame) == CONTROL[name]


def test_a_compressed_message_decodes() -> None:
    """Its frame is that of any control message."""
    assert parse_control(read("compressed.bin")) == Envelope(epoch=3, stop=pb.Stop(reason="asked to stop"))


def test_tracking_segments_decode() -> None:
    """Derived values equal listed ones, and roots of two tasks go to two destinations."""

    def heads(name: str) -> list[tuple[bytes, SegmentHead]]:
        data = read(f"tracking-{name}.bin")
        return [(data, parse_segment(data, start)) for start, _, _ in segment_routes(data, 0)]

    keys = np.frombuffer(read("tracking-edge-keys.bin"), "<u8").reshape(2, 4)
    derived = parse_new_roots(*heads("roots-derived")[0])
    assert (derived.base, derived.xors.tolist()) == (1000, (keys[0] ^ keys[1])[:3].tolist())
    listed = parse_new_roots(*heads("roots-listed")[0])
    assert (listed.base, listed.xors.tolist()) == (1000, _XORS.tolist())
    ack = parse_ack(*heads("ack-derived")[0])
    assert (ack.base, ack.roots, ack.xors.tolist()) == (1000, None, keys[0][:3].tolist())
    batches = heads("ack-listed")
    assert [head.destinations for _, head in batches] == [(5,), (6,)]
    first = parse_ack(*batches[0])
    assert first.roots is not None
    assert (first.roots.tolist(), first.xors.tolist()) == ([7, 9], [1, 2**63])
    assert [parse_fail(*each) for each in heads("fail")] == [[7, 9], [7]]
    for data, head in heads("cause"):
        counters, found = parse_cause(data, head)
        assert len(counters) == head.rows
        document = b'{"component":"count","task_id":3,"text":"first"}'
        assert found == [(document, b""), (document, b'"second"'), (document, b'"second"')][: head.rows]
        assert cause_lines(data, head)[2:] == [b""][: head.rows // 2], "an equal cause is an empty line"
    assert parse_settled(*heads("settled-derived")[0]) == (RootOutcome.COMPLETE, range(7, 10))
    assert parse_settled(*heads("settled-listed")[0]) == (RootOutcome.EXPIRED, [9, 7])


def test_data_frames_decode() -> None:
    """Header, cuts, heads, options, payload."""
    assert WIRE_VERSION == 1
    assert parse_frame_header(read("frame-data-empty.bin")) == (FrameKind.DATA, SESSION, 2**40 + 1)
    frame = read("frame-data-two-segments.bin")
    assert parse_frame_header(frame) == (FrameKind.DATA, SESSION, 8)
    cuts = list(segment_routes(frame))
    assert [destinations for _, _, destinations in cuts] == [(6, 9), (6, 9)]
    head = parse_segment(frame, cuts[0][0])
    assert (cuts[0][0], head.end) == (FRAME_HEADER_BYTES, cuts[0][1])
    assert _fixed(head) == (SegmentKind.TUPLES, Encoding.MSGPACK, 2, 3, 5, 65537, 2)
    assert frame[head.payload_start : head.end] == b"payload"
    assert {tag: bytes(value) for tag, value in head.options.items()} == {
        OptionTag.ROOTS: bytes(range(16)),
        OptionTag.KEYS: bytes(range(16, 32)),
        OptionTag.EVENT_TIMES: bytes(range(32, 48)),
        OptionTag.BATCH_KEY: bytes(range(48, 56)),
        999: b"?",
    }


def test_a_retargeted_segment_decodes() -> None:
    """Only length and destinations differ."""
    before, after = read("segment-tuples.bin"), read("segment-tuples-retargeted.bin")
    head = parse_segment(after, 0)
    assert head.destinations == (9,)
    assert len(after) == len(before) - 4
    assert after[head.payload_start :] == before[parse_segment(before, 0).payload_start :]
    assert _fixed(head) == _fixed(parse_segment(before, 0))


def _fixed(head: SegmentHead) -> tuple[int, ...]:
    fixed = (head.kind, head.encoding, head.stream, head.plan_version)
    return (*fixed, head.source_task, head.incarnation, head.rows)


@pytest.mark.parametrize("kind", Marker)
def test_markers_decode(kind: Marker) -> None:
    """Kind in the stream field, value in eight bytes, no rows."""
    data = read(f"marker-{kind.name.lower()}.bin")
    head = parse_segment(data, 0)
    assert _fixed(head) == (SegmentKind.MARKER, Encoding.NONE, kind, 3, 5, 65537, 0)
    assert int.from_bytes(data[head.payload_start : head.end], "little", signed=True) == MARKERS[kind]


def test_documents_decode() -> None:
    """Later versions must read the documents in the state manager."""
    assert decode_topology(read("topology.json"), "golden") == TOPOLOGY
    assert decode_packing_plan(read("packing-plan.json"), "golden") == PACKING  # of an earlier version
    assert decode_packing_plan(read("packing-plan-with-packages.json"), "golden") == PACKING_WITH_PACKAGES
    for name, plan in {"": PHYSICAL, "-with-update": PHYSICAL_WITH_UPDATE}.items():  # of earlier versions
        assert decode_physical_plan(read(f"physical-plan{name}.json"), "golden") == plan
    with_checkpoints = read("physical-plan-with-checkpoints.json")
    assert decode_physical_plan(with_checkpoints, "golden") == PHYSICAL_WITH_CHECKPOINTS
    assert decode_physical_plan(read("physical-plan-with-regions.json"), "golden") == PHYSICAL_WITH_REGIONS
    assert decode_physical_plan(read("physical-plan-with-keys.json"), "golden") == PHYSICAL_WITH_KEYS
    assert decode_physical_plan(read("physical-plan-with-undivided.json"), "golden") == PHYSICAL_WITH_UNDIVIDED
    assert decode_physical_plan(read("physical-plan-with-code.json"), "golden") == PHYSICAL_WITH_CODE
    for name, status in FORMER_STATUSES.items():
        assert decode_status(read(f"{name}.json")) == status
    assert decode_status(read("status-with-code.json")) == STATUS_WITH_CODE
    for name in ("metrics-table", "metrics-table-of-series"):  # the first is of an earlier version
        assert decode_metrics(read(f"{name}.json")) == METRICS_TABLE


def test_a_batch_that_is_one_root_decodes() -> None:
    """Its tuples are acked one by one, and the batch with the last of them."""
    batch = tracked_batch(parse_segment(read("segment-tuples-unit.bin"), 0), 6)
    assert batch is not None
    assert (batch.tuples, batch.rows, batch.root_base) == (50_000, 1, int.from_bytes(b"8765432\0", "little"))


def test_the_probability_of_kept_rows_decodes() -> None:
    """Without the option nothing was shed; a receiver refuses a probability that would make weights senseless."""
    assert kept_probability(parse_segment(read("segment-tuples-kept.bin"), 0)) == 0.125
    assert kept_probability(parse_segment(read("segment-tuples-unit.bin"), 0)) == 1.0
    assert kept_option(1.0) == b""
    for wrong in (struct.pack("<d", 0.0), struct.pack("<d", 1.5), struct.pack("<d", math.nan), b"short"):
        data = segment(
            (6,),
            b"",
            kind=SegmentKind.TUPLES,
            encoding=Encoding.NONE,
            stream=0,
            plan_version=1,
            source_task=5,
            incarnation=1,
            rows=1,
            options=option(OptionTag.KEPT, wrong),
        )
        with pytest.raises(RemoteProtocolError, match="impossible probability"):
            kept_probability(parse_segment(data, 0))


def test_a_pickled_payload_decodes() -> None:
    """Pinned only for reading: the bytes that pickle writes may differ between versions of Python."""
    assert decode_columns(read("payload-pickle.bin"), 4) == COLUMNS


if __name__ == "__main__":
    for missing, content in (FILES | {"payload-pickle.bin": pickle.dumps(COLUMNS, 5)}).items():
        if not (GOLDEN / missing).exists():
            (GOLDEN / missing).write_bytes(content)

"""Every decoder of bytes that another process has written, with good inputs, and the errors that it may raise.

The good inputs are the golden files of the wire, and values that the encoders of the core write.
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from heron.api.definition import GroupingKind
from heron.checkpoints.archive import CheckpointArchive, places_of
from heron.checkpoints.manifest import (
    CheckpointId,
    CheckpointManifest,
    TaskSnapshot,
    decode_manifest,
    decode_snapshot,
    encode,
)
from heron.driver_kit.large_values import LargeValues
from heron.errors import CheckpointError, HeronError, PackageError, RemoteProtocolError, SerializationError, StateError
from heron.instance.acks.tracked_batch import tracked_batch
from heron.instance.codec.batch_codec import decode_columns, decode_values
from heron.instance.codec.plain import PlainSerializer
from heron.instance.codec.serializers import Serializers
from heron.instance.gateway.session import Session
from heron.instance.input.batch_reader import BatchReader
from heron.instance.queues.data_queue import DataIn
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metrics_table import decode_metrics
from heron.ipc.documents.status import StatusReader, decode_status
from heron.ipc.documents.traces_table import decode_traces
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import (
    Encoding,
    FrameKind,
    OptionTag,
    SegmentKind,
    credit_body,
    frame_header,
    marker_value,
    option,
    parse_segment,
    segment,
    segment_routes,
)
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.frames.metrics_codec import record_of
from heron.ipc.frames.trace_field import parse_trace
from heron.ipc.frames.tracking import MAX_DERIVED_ROWS
from heron.ipc.wakeup import Wakeup
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack, unpack
from heron.kernel.queue_capacity import QueueCapacity
from heron.planner.code_change import decode_change
from heron.planner.key_balance import decode_owners
from heron.planner.runtime_config import decode_changes
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, Versioned
from heron.spi.task_capture import decode_capture
from heron.spi.task_memory import decode_memory
from heron.spi.task_profile import decode_profile
from heron.spi.task_stacks import decode_stacks
from heron.spi.task_tuples import decode_tuples
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan, decode_tasks, decode_topology
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.instance_links import InstanceLink
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import Watermarks
from heron.stmgr.peer_session import PeerInbound
from heron.stmgr.router import Router
from heron.tmanager.messages import checkpoint_report, location_of, long_call_report, process_report, task_report
from heron_driver_kit.packages import PackageName
from heron_serializer_arrow import ArrowSerializer
from heron_serializer_msgpack import MsgpackSerializer
from heron_testing.builders import bolt, plan_index, spout, stream, subscription, topology
from heron_testing.hostile_bytes import Decoder
from heron_testing.memory_checkpoints import MemoryCheckpointStore

__all__ = ["all_decoders"]

GOLDEN = Path(__file__).parents[2] / "heron-core" / "tests" / "wire" / "golden"
LIMITS = FrameLimits(1 << 22)
SESSION = 0x01020304  # of the golden frames
WORDS: list[object] = ["to", "be", "or", "not", "to", "be"]
COLUMNS: list[Sequence[object]] = [WORDS, [1, 2, 3, 4, 5, 6]]
MOST_ZLIB = 1032
"""The most bytes that zlib makes of one byte."""

BYTES_OF_DERIVED = 4 * 8 * MAX_DERIVED_ROWS
"""The short form of acks stands for a million keys of 8 bytes, whatever its size; computing them takes some copies."""


def golden(*patterns: str) -> tuple[bytes, ...]:
    """The golden files with these names."""
    return tuple(path.read_bytes() for pattern in patterns for path in sorted(GOLDEN.glob(pattern)))


def tuples(
    payload: bytes, encoding: int, options: bytes = b"", rows: int = len(WORDS), stream_number: int = 0
) -> bytes:
    """A segment of tuples from task 1 to task 2."""
    return segment(
        (2,),
        payload,
        kind=SegmentKind.TUPLES,
        encoding=encoding,
        stream=stream_number,
        plan_version=1,
        source_task=1,
        incarnation=0,
        rows=rows,
        options=options,
    )


TRACKED = option(OptionTag.BATCH_KEY, bytes(8)) + option(OptionTag.ROOT_BASE, bytes(8))


def data_frames() -> tuple[bytes, ...]:
    """Frames of a session with number 1: tuples in every encoding that is not a pickle, markers, and credit."""
    plain, msgpack, arrow = PlainSerializer(), MsgpackSerializer(), ArrowSerializer()
    segments = [
        *golden("marker-*.bin"),
        tuples(plain.encode(COLUMNS), Encoding.PLAIN),
        tuples(plain.encode(COLUMNS), Encoding.PLAIN, TRACKED),
        tuples(plain.encode([]), Encoding.PLAIN, TRACKED, stream_number=1),
        tuples(msgpack.encode(COLUMNS), Encoding.MSGPACK),
        tuples(arrow.encode(COLUMNS), Encoding.ARROW),
    ]
    return (
        *framed(FrameKind.DATA, segments),
        frame_header(FrameKind.DATA, 1, 1) + b"".join(segments),
        frame_header(FrameKind.CREDIT, 1, 0) + credit_body(0, 0),
    )


def framed(kind: FrameKind, segments: Iterable[bytes]) -> tuple[bytes, ...]:
    """Each segment in a frame of session 1."""
    return tuple(frame_header(kind, 1, 1) + each for each in segments)


class _Silence:
    """A channel that nobody hears, and the producers of a peer that nobody counts."""

    def send(self, _frame: bytes) -> None:
        """Drop a frame."""


def stream_manager() -> Callable[[bytes], object]:
    """What a stream manager does with a frame of an instance, and of a peer."""
    state: dict[str, Router] = {}

    def router() -> Router:
        made = Router(AckRouting(LocalTasks(1, (1, 2)), lambda: 0.0), Watermarks(1 << 20, 1 << 21, 1 << 22, 64))
        made.set_tasks(range(1, 8))
        return made

    def decode(frame: bytes) -> None:
        if "router" not in state or sum(each.queued_bytes for each in state["router"].outlets.values()) > 1 << 20:
            state["router"] = router()
        hello, counters = pb.InstanceHello(task_id=1, endpoint="e"), TrafficCounters()
        link = InstanceLink(hello, _Silence(), 1, LIMITS)  # type: ignore[arg-type]
        control = link.handle(frame, state["router"], counters)
        if control is not None:
            parse_control(control)
            return
        inbound = PeerInbound(pb.PeerHello(container_id=2, session=1), b"", LIMITS)
        if frame[1] in (FrameKind.DATA, FrameKind.ACK):
            try:
                inbound.handle(frame, state["router"], counters)
            except RemoteProtocolError:
                if frame[1] == FrameKind.ACK:
                    raise
        state["router"].take_changed()

    return decode


def instance() -> Callable[[bytes], object]:
    """What an instance does with a frame of its stream manager: up to the values of its tuples."""
    serializers = Serializers(
        (
            DriverRef("serializer", "msgpack", "heron_serializer_msgpack:MsgpackSerializer", {}),
            DriverRef("serializer", "arrow", "heron_serializer_arrow:ArrowSerializer", {}),
        )
    )
    source = spout("lines", stream("word", "number"), stream(name="signals"), config={"topology.serializer": "plain"})
    index = plan_index(topology(source, bolt("count", subscription("lines", GroupingKind.SHUFFLE))))
    reader = BatchReader(index, serializers)
    wakeup = Wakeup()

    def decode(frame: bytes) -> None:
        data_in = DataIn(wakeup, QueueCapacity(1 << 20, 1 << 20, 0.1))
        control = Session(1, 1 << 20, data_in, LIMITS).handle(frame, data_in)
        if control is not None or frame[1] != FrameKind.DATA:
            return
        for start, _, _ in segment_routes(frame):
            head = parse_segment(frame, start)
            if head.kind == SegmentKind.MARKER:
                marker_value(frame, head)
            elif head.kind == SegmentKind.TUPLES:
                tracked_batch(head, 2)
                parse_trace(head)
                batch = reader.read(frame, head)
                for _ in batch.values():
                    pass

    return decode


def topology_manager(frame: bytes) -> None:
    """What a topology manager makes of a message before it decides."""
    envelope = parse_control(frame)
    body = body_of(envelope)
    message = getattr(envelope, body)
    converters: dict[str, Callable[..., object]] = {
        "task_report": task_report,
        "checkpoint_report": checkpoint_report,
        "process_report": process_report,
        "long_call": long_call_report,
        "metrics_publish": record_of,
        "stmgr_hello": location_of,
        "begin_update": lambda each: (
            decode_packing_plan(each.document, "p"),
            decode_owners(each.owners or b"{}"),
            each.code and decode_change(each.code),
        ),
        "change_config": lambda each: decode_changes(each.document),
        "plan": lambda each: decode_physical_plan(each.document, "p"),
        "container_tasks": lambda each: decode_tasks(each.document),
    }
    try:
        if body in converters:
            converters[body](message)
    except HeronError as error:
        raise RemoteProtocolError(str(error)) from error


def control_frames() -> tuple[bytes, ...]:
    """The golden control messages, one that is compressed, and messages with the documents that they carry."""
    plan = next(iter(golden("physical-plan.json")), b"{}")
    frames = [each for each in golden("control-*.bin") if _is_read(each)]
    packed = Envelope(compressed=zlib.compress(Envelope(plan=pb.Plan(version=1, document=plan)).SerializeToString()))
    return (*frames, control_frame(packed))


def _is_read(frame: bytes) -> bool:
    """Whether a golden message holds the document that its kind promises; some have a short text in its place."""
    try:
        topology_manager(frame)
    except RemoteProtocolError:
        return False
    return True


def _documents() -> Iterable[Decoder]:
    by_name: dict[str, Callable[[bytes], object]] = {
        "status": decode_status,
        "status-reader": lambda data: StatusReader().read(data),
        "metrics": decode_metrics,
        "traces": decode_traces,
        "stacks": decode_stacks,
        "profile": decode_profile,
        "memory": decode_memory,
        "tuples": decode_tuples,
        "capture": decode_capture,
        "physical-plan": partial(decode_physical_plan, place="p"),
        "packing-plan": partial(decode_packing_plan, place="p"),
        "topology": partial(decode_topology, place="p"),
        "tasks": decode_tasks,
        "owners": decode_owners,
        "changes": decode_changes,
        "code": decode_change,
    }
    deep = b'{"unknown":' + b"[" * 3000 + b"]" * 3000 + b"}"
    candidates = (*golden("*.json"), b"{}", b"[]", deep)
    for name, decode in by_name.items():
        yield Decoder(f"document-{name}", decode, (), (RemoteProtocolError, StateError), bait=candidates)


def _codecs() -> Iterable[Decoder]:
    plain, msgpack, arrow = PlainSerializer(), MsgpackSerializer(), ArrowSerializer()
    mixed: list[Sequence[object]] = [
        [None, "a", "b\0c"],
        [b"", b"x" * 50, None],
        [True, False, None],
        [1.5, None, 2.0],
        [None] * 3,
    ]
    refuses = (SerializationError,)

    def rows(serializer: PlainSerializer | MsgpackSerializer, data: bytes) -> object:
        """As `BatchReader` does: as a whole, else value by value."""
        try:
            return decode_columns(data, 3, serializer)
        except SerializationError:
            return decode_values(data, 3, serializer)

    def columns(data: bytes) -> object:
        batch = arrow.decode_batch(data, 3)
        try:
            return arrow.to_columns(batch)
        except SerializationError:
            return [str(each) for each in batch.columns]

    seeds: list[list[Sequence[object]]] = [[each[:3] for each in COLUMNS], mixed]
    yield Decoder("plain", partial(rows, plain), [plain.encode(each) for each in seeds], refuses)
    nested: list[Sequence[object]] = [[(1, (2, {3})), {"a": [1]}, 1 << 70], [1, 2, 3]]
    packed = [msgpack.encode(each) for each in (*seeds, nested)]
    yield Decoder("msgpack", partial(rows, msgpack), packed, refuses, least_bytes=2 << 20)
    table = pa.record_batch(
        {
            "text": ["a", None, "ccc"],
            "list": [[1, 2], [], [3]],
            "code": pa.array(["x", "y", "x"]).dictionary_encode(),
            "pair": [{"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}],
            "none": pa.nulls(3),
        }
    )
    batches = [_stream(table, None), _stream(table, "zstd"), _stream(table, "lz4"), arrow.encode(seeds[0])]
    yield Decoder("arrow", columns, batches, refuses, least_bytes=1 << 22)


def _stream(batch: pa.RecordBatch, compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _with_crc(data: bytes) -> bytes:
    return zlib.crc32(data[4:]).to_bytes(4, "little") + data[4:]


def _checkpoints() -> Iterable[Decoder]:
    store = MemoryCheckpointStore.open({})
    name = "t/run-1/0000000001/task-1"
    places = places_of(name, (b"operator", b"group"))
    snapshot = TaskSnapshot(1, "count", operator=places[0], groups={7: places[1]}, written_bytes=13)
    manifest = CheckpointManifest("t", "run-1", 1, 1.5, 0.5, 128, (snapshot,))
    archive = CheckpointArchive(store, "t")
    archive.save(name, (b"operator", b"group"))

    def load_all(data: bytes) -> None:
        """As a restore does: the manifest, and each payload that it names."""
        store.store("t/run-1/0000000001/manifest", data)
        for task in archive.manifest(CheckpointId("run-1", 1)).tasks:
            for place in task.places():
                archive.load(place)

    refuses = (CheckpointError,)
    yield Decoder("manifest", lambda data: decode_manifest(data, "m"), [encode(manifest)], refuses, repair=_with_crc)
    yield Decoder("snapshot", lambda data: decode_snapshot(data, "s"), [encode(snapshot)], refuses, repair=_with_crc)
    yield Decoder("archive", load_all, [encode(manifest)], refuses, repair=_with_crc)


def _packages() -> Iterable[Decoder]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pkg").mkdir()
        (root / "words.py").write_text("import pkg.part\n" * 20, encoding="utf-8")
        (root / "pkg" / "part.py").write_text("x = 1\n", encoding="utf-8")
        pack(root, ["words.py", "pkg/part.py"], PackageManifest("words", "words", {}), root / "p.tar.gz")
        package = (root / "p.tar.gz").read_bytes()

    def unpacked(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, target = Path(folder, "p.tar.gz"), Path(folder, "target")
            path.write_bytes(data)
            try:
                unpack(path, target)
            except PackageError:
                left = [each for each in target.rglob("*") if not each.is_dir()] if target.exists() else []
                assert not left, left
                raise
            assert all(each.is_file() or each.is_dir() for each in target.rglob("*"))
            assert set(Path(folder).iterdir()) == {path, target}

    refuses = (PackageError,)
    yield Decoder("package", unpacked, [package], refuses, least_bytes=4 << 20)
    tar = gzip.decompress(package)
    zipped = partial(gzip.compress, compresslevel=1, mtime=0)
    yield Decoder("package-tar", lambda data: unpacked(zipped(data)), [tar], refuses, least_bytes=4 << 20)
    name = PackageName("words", "0" * 64).file.encode()
    yield Decoder("package-name", _package_name, [name], refuses)


def _package_name(data: bytes) -> None:
    found = PackageName.of_file(data.decode("latin-1"))
    if found is None:
        message = "no package"
        raise PackageError(message)
    assert found.file == data.decode("ascii")


class _Nodes:
    """The nodes of a state manager, in memory."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[NodeKind, str], bytes] = {}

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        value = self._nodes.get((kind, topology))
        return None if value is None else Versioned(value, 1)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        del expected
        self._nodes[kind, topology] = value
        return 1

    def delete(self, kind: NodeKind, topology: str) -> None:
        del self._nodes[kind, topology]

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        return tuple(name for each, name in self._nodes if each is kind)


def _large_values() -> Decoder:
    state = _Nodes()
    values = LargeValues(state, 16 * 1024)  # type: ignore[arg-type]  # it calls these methods only
    seeds = []
    for value in (b"small", b"\0heron-value 1 plain\n", b"x" * 100_000):
        values.set(NodeKind.PHYSICAL_PLAN, "t", value)
        node = state.get(NodeKind.PHYSICAL_PLAN, "t")
        assert node is not None
        seeds.append(node.value)

    def read(data: bytes) -> object:
        state.set(NodeKind.PHYSICAL_PLAN, "t", data)
        return values.get(NodeKind.PHYSICAL_PLAN, "t")

    return Decoder("large-value", read, seeds, (StateError,), bytes_per_byte=4 * MOST_ZLIB)


def all_decoders() -> tuple[Decoder, ...]:
    """Every decoder."""
    frames, lies = data_frames(), framed(FrameKind.DATA, golden("segment-*.bin", "tracking-*.bin"))
    roots = framed(FrameKind.ACK, golden("tracking-ack-*.bin", "tracking-fail.bin", "tracking-roots-*.bin"))
    settled = framed(FrameKind.ACK, golden("tracking-settled-*.bin"))
    broken, undecodable = (RemoteProtocolError,), (RemoteProtocolError, SerializationError)
    return (
        Decoder(
            "stream-manager",
            stream_manager(),
            (*frames, *roots),
            broken,
            least_bytes=BYTES_OF_DERIVED,
            bait=(*lies, *settled),
        ),
        Decoder("instance", instance(), (*frames, *settled), undecodable, least_bytes=4 << 20, bait=(*lies, *roots)),
        Decoder(
            "control",
            topology_manager,
            control_frames(),
            broken,
            bytes_per_byte=8 * MOST_ZLIB,
            bait=golden("control-*.bin"),
        ),
        *_documents(),
        *_codecs(),
        *_checkpoints(),
        *_packages(),
        _large_values(),
    )

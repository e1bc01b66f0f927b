"""Control messages above the limit of a frame."""

from __future__ import annotations

import random

import pytest

from heron.errors import LimitExceededError, RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frames.frame import FrameKind, frame_header
from heron.ipc.frames.frame_limits import CONTROL_MAX_BYTES
from heron.ipc.reduced_messages import fitting

LIMIT = 2000
NOISE = random.Random(1).randbytes(4 * LIMIT)  # does not compress
TEXT = "x" * 4 * LIMIT


def read(data: bytes) -> Envelope:
    assert len(data) <= LIMIT
    return parse_control(frame_header(FrameKind.CONTROL, 0, 0) + data)


def test_a_message_that_fits_is_sent_as_it_is() -> None:
    """It is the usual case."""
    envelope = Envelope(plan=pb.Plan(version=3))
    assert fitting(envelope, LIMIT) == envelope.SerializeToString()


def test_a_larger_message_is_compressed_if_that_suffices() -> None:
    """Plans and answers are JSON."""
    envelope = Envelope(epoch=2, plan=pb.Plan(version=3, document=TEXT.encode()))
    assert read(fitting(envelope, LIMIT)) == envelope


def metrics(**parts: int) -> pb.MetricsPublish:
    words = random.Random(2)
    return pb.MetricsPublish(
        topology="t",
        metrics=[pb.Metric(name=words.randbytes(20).hex()) for _ in range(parts.get("metrics", 1))],
        events=[pb.Event(name=words.randbytes(20).hex()) for _ in range(parts.get("events", 1))],
        spans=[pb.TraceSpan(source=words.randbytes(20).hex()) for _ in range(parts.get("spans", 1))],
    )


@pytest.mark.parametrize(
    ("parts", "left"),
    [({"spans": 200}, (1, 1, 0)), ({"events": 200}, (1, 0, 0)), ({"metrics": 200}, (0, 0, 0))],
)
def test_metrics_lose_the_least_important_part_first(parts: dict[str, int], left: tuple[int, int, int]) -> None:
    """The process goes on, and its next record may fit."""
    found = read(fitting(Envelope(metrics_publish=metrics(**parts)), LIMIT)).metrics_publish
    assert (len(found.metrics), len(found.events), len(found.spans)) == left
    assert found.topology == "t"


@pytest.mark.parametrize("body", ["status_reply", "metrics_reply", "traces_reply"])
def test_an_answer_becomes_a_refusal_with_its_size(body: str) -> None:
    """A command shows it instead of waiting."""
    kind = {"status_reply": pb.StatusReply, "metrics_reply": pb.MetricsReply, "traces_reply": pb.TracesReply}[body]
    envelope = Envelope(**{body: kind(request_id=8, document=NOISE)})  # type: ignore[arg-type]
    refused = read(fitting(envelope, LIMIT)).refused
    assert refused.request_id == 8
    assert f"{body} of {len(envelope.SerializeToString())} bytes exceeds" in refused.reason
    assert f"{LIMIT} bytes; ask for one component" in refused.reason


def test_reports_lose_what_is_too_large() -> None:
    """The phase of a task must arrive. A snapshot that does not arrive fails its checkpoint."""
    answer = read(fitting(Envelope(task_answer=pb.TaskAnswer(request_id=3, document=NOISE)), LIMIT)).task_answer
    assert (answer.request_id, "exceeds the limit" in answer.failure, answer.document) == (3, True, b"")
    report = pb.TaskReport(task_id=4, phase=pb.TASK_PHASE_ENDED, totals=metrics(metrics=200))
    found = read(fitting(Envelope(task_report=report), LIMIT)).task_report
    assert (found.task_id, found.phase, found.HasField("totals")) == (4, pb.TASK_PHASE_ENDED, False)
    hello = read(fitting(Envelope(stmgr_hello=pb.StmgrHello(container_id=2, tasks=[report])), LIMIT)).stmgr_hello
    assert [(each.task_id, each.HasField("totals")) for each in hello.tasks] == [(4, False)]
    saved = pb.CheckpointReport(task_id=4, number=7, phase=pb.CHECKPOINT_PHASE_SAVED, snapshot=NOISE)
    checkpoint = read(fitting(Envelope(checkpoint_report=saved), LIMIT)).checkpoint_report
    assert (checkpoint.number, checkpoint.phase, checkpoint.snapshot) == (7, pb.CHECKPOINT_PHASE_FAILED, b"")
    assert "exceeds the limit" in checkpoint.error


def test_other_messages_are_an_error_of_their_sender() -> None:
    """A part of a plan would be a wrong plan."""
    with pytest.raises(LimitExceededError, match=f"plan of .* bytes exceeds the limit of a control message, {LIMIT}"):
        fitting(Envelope(plan=pb.Plan(document=NOISE)), LIMIT)


@pytest.mark.matrix
def test_control_frames_are_made_and_read_within_the_limit() -> None:
    """64 MiB of noise do not compress."""
    noise = random.Random(3).randbytes(CONTROL_MAX_BYTES)
    reply = control_frame(Envelope(status_reply=pb.StatusReply(request_id=1, document=noise)))
    assert body_of(parse_control(reply)) == "refused"
    envelope = Envelope(status_reply=pb.StatusReply(document=noise)).SerializeToString()
    with pytest.raises(RemoteProtocolError, match=f"exceeds the limit of {CONTROL_MAX_BYTES} bytes"):
        parse_control(frame_header(FrameKind.CONTROL, 0, 0) + envelope)

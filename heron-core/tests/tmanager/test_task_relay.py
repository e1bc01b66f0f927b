"""Questions and commands for tasks: what is refused before a task hears of it."""

from __future__ import annotations

from typing import cast

import pytest

from heron.errors import HeronError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.keys import ClientKind
from heron.ipc.reactor import Reactor
from heron.tmanager.messages import check_permission
from heron.tmanager.state.containers import Containers
from heron.tmanager.task_relay import AskedTask, TaskRelay


@pytest.mark.parametrize("count", [0, 1001])
def test_a_request_has_one_to_a_thousand_dead_letters(count: int) -> None:
    """A task emits them in one go."""
    relay = TaskRelay(Reactor(), cast("Containers", None), cast("AskedTask", None))
    request = pb.LettersRequest(request_id=1, task_id=1, wait_s=1.0, ids=map(str, range(count)))
    with pytest.raises(HeronError, match=f"a request for {count} dead letters is not for 1 to 1000"):
        relay.asked(b"", Envelope(letters_request=request))


def test_dead_letters_are_changed_with_the_control_key_only() -> None:
    """The reader's key may ask about a task, and change nothing."""
    check_permission(ClientKind.READER, "stack_request")
    check_permission(ClientKind.CONTROL, "letters_request")
    with pytest.raises(HeronError, match="letters_request is not for the topology's read-only key"):
        check_permission(ClientKind.READER, "letters_request")


class AskedContainers:
    """Keeps what is asked."""

    def __init__(self) -> None:
        self.asked: list[pb.CaptureRequest] = []

    def ask_stmgr(self, _container: int, envelope: Envelope) -> bool:
        """Keep it."""
        self.asked.append(envelope.capture_request)
        return True


@pytest.mark.parametrize("shape", [False, True])
def test_a_capture_of_values_needs_the_permission_and_a_shape_the_salt(shape: bool) -> None:
    """Who asks must not choose the salt: the hashes of all possible keys would tell the keys."""
    containers, asked = AskedContainers(), []

    def place(component: str, task_id: int, *, tuples: bool = False) -> tuple[str, int, None]:
        asked.append((component, task_id, tuples))
        return "words", 2, None

    relay = TaskRelay(Reactor(), cast("Containers", containers), place)
    for number in (1, 2):
        request = pb.CaptureRequest(
            request_id=number, task_id=number, wait_s=1.0, seconds=1.0, most_bytes=1024, shape=shape, salt=b"chosen"
        )
        relay.asked(b"", Envelope(capture_request=request))
    assert asked == [("", number, not shape) for number in (1, 2)]
    salts = {each.salt for each in containers.asked}
    assert len(salts) == 1
    assert b"chosen" not in salts


@pytest.mark.parametrize(
    ("seconds", "most_bytes", "why"),
    [
        (0.0, 1024, "a capture of 0 s is not above 0"),
        (301.0, 1024, "at most 300 s"),
        (1.0, 1 << 26, "is not of 1024 to"),
    ],
)
def test_a_capture_is_bounded(seconds: float, most_bytes: int, why: str) -> None:
    """A task holds what it has captured."""
    relay = TaskRelay(Reactor(), cast("Containers", None), cast("AskedTask", None))
    request = pb.CaptureRequest(request_id=1, task_id=1, wait_s=1.0, seconds=seconds, most_bytes=most_bytes)
    with pytest.raises(HeronError, match=why):
        relay.asked(b"", Envelope(capture_request=request))

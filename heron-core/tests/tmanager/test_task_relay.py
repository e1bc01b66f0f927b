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

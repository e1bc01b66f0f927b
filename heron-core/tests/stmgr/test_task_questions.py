"""Questions about tasks on their way through a stream manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control

if TYPE_CHECKING:
    from conftest import Instance, Site, Stmgr

pytestmark = pytest.mark.leaks_nothing


def ask(stmgr: Stmgr, number: int, task_id: int) -> None:
    request = pb.StackRequest(request_id=number, task_id=task_id, wait_s=1.0)
    stmgr.send_as_tmanager(Envelope(epoch=1, stack_request=request))


def asked(instance: Instance) -> int:
    """The number of the next question to an instance."""
    while True:
        assert instance.channel.wait(10)
        frame = instance.channel.receive()
        assert frame is not None
        envelope = parse_control(frame)
        if envelope.HasField("stack_request"):
            return envelope.stack_request.request_id


def test_a_question_reaches_its_task_and_the_answer_comes_back(site: Site, one: Stmgr) -> None:
    """The stream manager changes neither."""
    instance = site.registered(1)
    ask(one, 7, 1)
    assert asked(instance) == 7
    answer = Envelope(task_answer=pb.TaskAnswer(request_id=7, document=b"{}"))
    instance.channel.send(control_frame(answer, instance.session))
    assert one.expect("task_answer").task_answer == answer.task_answer


def test_a_question_to_a_task_that_is_not_there_fails_at_once(site: Site, one: Stmgr) -> None:
    """So does a question whose task dies before it answers; a command need not wait for its time limit."""
    instance = site.registered(1)
    ask(one, 7, 2)
    answer = one.expect("task_answer").task_answer
    assert (answer.request_id, answer.failure) == (7, "the process of task 2 is not connected to its stream manager")
    ask(one, 8, 1)
    assert asked(instance) == 8
    site.registered(1, incarnation=1, attempt=2)
    answer = one.expect("task_answer").task_answer
    assert (answer.request_id, answer.failure) == (8, "the process of task 1 has ended before it answered")

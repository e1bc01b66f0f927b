"""Passes questions of commands to tasks, and the answers back: the part of the shell that has open questions."""

from __future__ import annotations

import secrets
from typing import Protocol

from heron.errors import HeronError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.ipc.task_question import MOST_LETTERS, TaskRequest, task_request
from heron.tmanager.leader.instructions import Instruction
from heron.tmanager.leader.task_questions import AskedPlace, TaskQuestion, TaskQuestions, silence_of
from heron.tmanager.state.containers import Containers

__all__ = ["TaskRelay"]

_LONGEST_WAIT_S = 60.0
_LONGEST_LOOK_S = 300.0  # nobody waits for longer, and it costs the task
_MOST_TUPLES = 100  # of each direction: the answer stays small, and people read no more
_CAPTURE_BYTES = range(1 << 10, (32 << 20) + 1)  # as text, the largest one fits into a control frame
_SALT_BYTES = 32

_OBSERVATIONS = {
    pb.ProfileRequest: "a profile",
    pb.MemoryRequest: "an observation of memory",
    pb.TuplesRequest: "a sample",
    pb.CaptureRequest: "a capture",
}


class AskedTask(Protocol):
    """`heron.tmanager.leader.leader.Leader.asked_task`."""

    def __call__(self, component: str, task_id: int, *, tuples: bool = False) -> AskedPlace:
        """Finds a task; with `tuples`, checks that they may be shown."""
        ...


class TaskRelay:
    """The questions under way. Every question is answered once: by its task, or here when the task does not."""

    def __init__(self, reactor: Reactor, containers: Containers, asked_task: AskedTask) -> None:
        self._reactor = reactor
        self._containers = containers
        self._asked_task = asked_task
        self._questions = TaskQuestions()
        self._salt = secrets.token_bytes(_SALT_BYTES)  # nobody who asks can guess a key from its hash

    def asked(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        """Passes a question of a command on.

        Raises:
            HeronError: when there is no such task, a number is out of its range, or tuples may not be shown.
        """
        request = task_request(envelope)
        lasts_s = _seconds_of(request)
        if not 0 < request.wait_s <= _LONGEST_WAIT_S:
            msg = f"a wait of {request.wait_s:g} s is not above 0 and at most {_LONGEST_WAIT_S:g} s"
            raise HeronError(msg)
        tuples = isinstance(request, pb.TuplesRequest)
        if isinstance(request, pb.CaptureRequest):
            tuples, request.salt = not request.shape, self._salt
        component, container_id, _ = self._asked_task(request.component, request.task_id, tuples=tuples)
        number = self._questions.add(TaskQuestion(identity, request.request_id, request.task_id, container_id))
        wait_s, request.request_id = lasts_s + request.wait_s, number
        if self._containers.ask_stmgr(container_id, envelope):
            self._reactor.after(wait_s, lambda: self._give_up(number, component, wait_s))
        else:
            self._fail(number, f"container {container_id} of task {component}/{request.task_id} is not connected")
        return []

    def answered(self, _identity: bytes, envelope: Envelope) -> list[Instruction]:
        """Passes an answer back; a late one is dropped."""
        answer = envelope.task_answer
        question = self._questions.take(answer.request_id)
        if question is not None and answer.refusal:
            refused = pb.Refused(request_id=question.request_id, reason=answer.refusal)
            self._containers.answer(question.asker, Envelope(refused=refused))
        elif question is not None:
            answer.request_id = question.request_id
            self._containers.answer(question.asker, Envelope(task_answer=answer))
        return []

    def lost(self, container_id: int) -> None:
        """The stream manager of a container has connected again: answers may have been lost."""
        for number in self._questions.of_container(container_id):
            self._fail(number, f"the stream manager of container {container_id} was connected again meanwhile")

    def _give_up(self, number: int, component: str, waited_s: float) -> None:
        question = self._questions.take(number)
        if question is not None:
            try:
                _, _, process = self._asked_task("", question.task_id)
                reason = silence_of(component, question.task_id, process, waited_s)
            except HeronError:  # an update has removed it meanwhile
                reason = f"task {component}/{question.task_id} has left the topology"
            self._fail_question(question, reason)

    def _fail(self, number: int, reason: str) -> None:
        question = self._questions.take(number)
        if question is not None:
            self._fail_question(question, reason)

    def _fail_question(self, question: TaskQuestion, reason: str) -> None:
        answer = pb.TaskAnswer(request_id=question.request_id, failure=reason)
        self._containers.answer(question.asker, Envelope(task_answer=answer))


def _seconds_of(request: TaskRequest) -> float:
    """The seconds that the task needs for its answer."""
    if isinstance(request, pb.LettersRequest) and not 0 < len(request.ids) <= MOST_LETTERS:
        msg = f"a request for {len(request.ids)} dead letters is not for 1 to {MOST_LETTERS}"
        raise HeronError(msg)
    if isinstance(request, pb.StackRequest | pb.LettersRequest):
        return 0.0
    seconds, single_look = request.seconds, isinstance(request, pb.MemoryRequest) and request.seconds == 0
    if not 0 < seconds <= _LONGEST_LOOK_S and not single_look:
        what = _OBSERVATIONS[type(request)]
        msg = f"{what} of {seconds:g} s is not above 0 and at most {_LONGEST_LOOK_S:g} s"
        raise HeronError(msg)
    if isinstance(request, pb.TuplesRequest) and not 0 < request.tuples <= _MOST_TUPLES:
        msg = f"a sample of {request.tuples} tuples is not of 1 to {_MOST_TUPLES}"
        raise HeronError(msg)
    if isinstance(request, pb.CaptureRequest) and request.most_bytes not in _CAPTURE_BYTES:
        msg = f"a capture of {request.most_bytes} bytes is not of {_CAPTURE_BYTES[0]} to {_CAPTURE_BYTES[-1]} bytes"
        raise HeronError(msg)
    return seconds

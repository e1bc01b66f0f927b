"""Passes questions of commands to tasks, and the answers back: the part of the service that has open questions."""

from __future__ import annotations

from collections.abc import Callable

from heron.errors import HeronError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of
from heron.ipc.reactor import Reactor
from heron.ipc.status import ProcessStatus
from heron.tmanager.containers import Containers
from heron.tmanager.instructions import Instruction
from heron.tmanager.task_questions import TaskQuestion, TaskQuestions, silence_of

__all__ = ["TaskRelay"]

_LONGEST_WAIT_S = 60.0
_LONGEST_PROFILE_S = 300.0  # nobody looks at a longer one, and it costs the task

AskedTask = Callable[[str, int], tuple[str, int, ProcessStatus | None]]
"""Returns component, container and process of a task."""


class TaskRelay:
    """The questions under way. Every question is answered once: by its task, or here when the task does not."""

    def __init__(self, reactor: Reactor, containers: Containers, asked_task: AskedTask) -> None:
        self._reactor = reactor
        self._containers = containers
        self._asked_task = asked_task
        self._questions = TaskQuestions()

    def asked(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        """Passes a question of a command on.

        Raises:
            HeronError: when there is no such task, or a time is out of its range.
        """
        request = envelope.profile_request if body_of(envelope) == "profile_request" else envelope.stack_request
        lasts_s = _profile_s(request) if isinstance(request, pb.ProfileRequest) else 0.0
        if not 0 < request.wait_s <= _LONGEST_WAIT_S:
            msg = f"a wait of {request.wait_s:g} s is not above 0 and at most {_LONGEST_WAIT_S:g} s"
            raise HeronError(msg)
        component, container_id, _ = self._asked_task(request.component, request.task_id)
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


def _profile_s(request: pb.ProfileRequest) -> float:
    if not 0 < request.seconds <= _LONGEST_PROFILE_S:
        msg = f"a profile of {request.seconds:g} s is not above 0 and at most {_LONGEST_PROFILE_S:g} s"
        raise HeronError(msg)
    return request.seconds

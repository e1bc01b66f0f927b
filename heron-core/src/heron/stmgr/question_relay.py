"""Passes questions of the topology manager to local tasks, and the answers back."""

from __future__ import annotations

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of
from heron.ipc.locator import TManagerChannel
from heron.ipc.task_question import task_request
from heron.stmgr.instance_links import InstanceLinks
from heron.stmgr.task_questions import TaskQuestions

__all__ = ["QuestionRelay"]


class QuestionRelay:
    """The questions under way. A question fails here when the process of its task is not connected, or ends."""

    def __init__(self, instances: InstanceLinks, tmanager: TManagerChannel) -> None:
        self._instances = instances
        self._tmanager = tmanager
        self._questions = TaskQuestions()

    def ask(self, question: Envelope) -> None:
        """Passes a question to its task."""
        request = task_request(question)
        if self._instances.send(request.task_id, question):
            self._questions.asked(request.request_id, request.task_id)
        else:
            reason = f"the process of task {request.task_id} is not connected to its stream manager"
            self._fail(request.request_id, reason)

    def forward(self, envelope: Envelope) -> None:
        """Passes a message of a task on; it may be an answer."""
        if body_of(envelope) == "task_answer":
            self._questions.answered(envelope.task_answer.request_id)
        self._tmanager.send(envelope)

    def task_lost(self, task_id: int) -> None:
        """The session of a task has ended: its questions fail."""
        for number in self._questions.lost(task_id):
            self._fail(number, f"the process of task {task_id} has ended before it answered")

    def _fail(self, number: int, reason: str) -> None:
        self._tmanager.send(Envelope(task_answer=pb.TaskAnswer(request_id=number, failure=reason)))

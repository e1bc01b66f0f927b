"""The questions of the topology manager that local tasks have not answered yet. Pure."""

from __future__ import annotations

__all__ = ["TaskQuestions"]


class TaskQuestions:
    """Questions by their number. The topology manager gives up what a task never answers."""

    __slots__ = ("_task_of",)

    def __init__(self) -> None:
        self._task_of: dict[int, int] = {}

    def asked(self, number: int, task_id: int) -> None:
        """A question was sent to a task."""
        self._task_of[number] = task_id

    def answered(self, number: int) -> None:
        """The task has answered."""
        self._task_of.pop(number, None)

    def lost(self, task_id: int) -> tuple[int, ...]:
        """The session of a task has ended: the questions that it will not answer, which are then forgotten."""
        numbers = tuple(number for number, each in self._task_of.items() if each == task_id)
        for number in numbers:
            del self._task_of[number]
        return numbers

"""The questions of commands that tasks have not answered yet. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_INSPECT_TUPLES
from heron.api.config import merged_config, setting
from heron.api.definition import TopologyDefinition
from heron.errors import HeronError, known, nearest
from heron.ipc.documents.status import ProcessStatus

__all__ = ["AskedPlace", "TaskQuestion", "TaskQuestions", "check_inspection", "check_selection", "silence_of"]

AskedPlace = tuple[str, int, ProcessStatus | None]
"""Component, container and process of a task."""


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A question: the connection of the command that asks, its own number, and the task."""

    asker: bytes
    request_id: int
    task_id: int
    container_id: int


class TaskQuestions:
    """Questions under way. Their numbers are unique in one topology manager, those of commands are not."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, TaskQuestion] = {}

    def add(self, question: TaskQuestion) -> int:
        """Stores a question and returns its number."""
        number = next(self._numbers)
        self._open[number] = question
        return number

    def take(self, number: int) -> TaskQuestion | None:
        """Removes a question; None if it was answered or given up already."""
        return self._open.pop(number, None)

    def of_container(self, container_id: int) -> tuple[int, ...]:
        """The questions to tasks of a container."""
        return tuple(number for number, each in self._open.items() if each.container_id == container_id)


def check_selection(tasks: Mapping[int, str], component: str, task_id: int) -> None:
    """Checks that the tasks (id and component) have this component and this task; "" and 0 select all.

    Raises:
        HeronError: when they do not; lists the known ones.
    """
    if component and component not in tasks.values():
        components = sorted(set(tasks.values()))
        msg = f"component {component!r} is unknown{nearest(component, components)}; known: {known(components)}"
        raise HeronError(msg)
    if task_id and tasks.get(task_id, "") not in ({component} if component else {*tasks.values()}):
        ids = ", ".join(str(each) for each, name in sorted(tasks.items()) if component in ("", name))
        what = f"is not of component {component!r}; its tasks" if task_id in tasks else "is unknown; known"
        msg = f"task {task_id} {what}: {ids}"
        raise HeronError(msg)


def check_inspection(definition: TopologyDefinition, component: str, *, wanted: bool) -> None:
    """Checks that the configuration allows values of a component's tuples to be shown, if they are `wanted`.

    Raises:
        HeronError: when it does not.
    """
    config = merged_config(definition.config, definition.component(component).config)
    if wanted and setting(config, TOPOLOGY_INSPECT_TUPLES) is not True:
        allows = f"`heron update {definition.name} --runtime-config {TOPOLOGY_INSPECT_TUPLES}=true`"
        msg = f"{TOPOLOGY_INSPECT_TUPLES} of component {component!r} is false: tuples are not shown; {allows} allows it"
        raise HeronError(msg)


def silence_of(component: str, task_id: int, process: ProcessStatus | None, waited_s: float) -> str:
    """Says that a task has not answered, and which process to look at."""
    what = f"task {component}/{task_id} has not answered within {round(waited_s, 1):g} s"
    if process is None or not process.pid:
        return f"{what}: its process does not run"
    return (
        f"{what}: its process (pid {process.pid} on {process.host or 'an unknown host'}) is stopped, gets no "
        "processor, or native code holds the interpreter lock"
    )

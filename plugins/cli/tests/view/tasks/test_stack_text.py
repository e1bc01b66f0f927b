"""The threads of a task as text, and the argument that names a task."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack
from heron_cli.commands.task_argument import TaskChoice, task_argument
from heron_cli.view.tasks.stack_text import stack_text

FRAMES = (
    StackFrame("/engine/runner.py", 7, "BoltRunner.work", "engine", "self._component.process(tup)"),
    StackFrame("/me/words.py", 12, "Count.process", "user", "self.lock.acquire()"),
)


def thread(state: str, waits_for: str = "", *, role: str = "task", share: float = 0.0, omitted: int = 0) -> ThreadStack:
    return ThreadStack("MainThread", 8, role, state, share, 2.25, waits_for, FRAMES, omitted)


def text_of(*threads: ThreadStack) -> str:
    return stack_text(TaskStacks("words", "count", 3, 1, 1, 77, "here", 0.0, threads)).plain


def test_user_code_is_marked_and_the_reason_comes_first() -> None:
    """The first line of a thread answers the question; the marks lead to the author's lines."""
    assert text_of(thread("waits", "a lock")).splitlines() == [
        "count/3 in container 1: pid 77 on here",
        "",
        "thread MainThread (runs the component): waits for a lock; 2.2 s of processor time",
        "    engine   /engine/runner.py, line 7, in BoltRunner.work",
        "               self._component.process(tup)",
        "  > user     /me/words.py, line 12, in Count.process",
        "               self.lock.acquire()",
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (thread("running", share=0.973), "runs, on a processor for 97% of the time"),
        (thread("running", role="gateway"), "(serves the sockets): runs;"),
        (thread("ready"), "is ready to run, and waits for a processor"),
        (thread("waits", role="other"), "thread MainThread: waits;"),
        (thread("unknown"), "in an unknown state"),
        (thread("waits", omitted=40), "… 40 more calls …"),
    ],
)
def test_each_state_is_named(shown: ThreadStack, expected: str) -> None:
    """A thread that waits for a processor shows a busy machine, not a slow component."""
    assert expected in text_of(shown)


@pytest.mark.parametrize(("text", "expected"), [("3", TaskChoice("", 3)), ("a/b/3", TaskChoice("a/b", 3))])
def test_a_task_is_named_by_number_or_with_its_component(text: str, expected: TaskChoice) -> None:
    """Errors and metrics show tasks as COMPONENT/NUMBER, which people copy."""
    found: list[TaskChoice] = []

    @click.command()
    @task_argument
    def command(task: TaskChoice) -> None:
        found.append(task)

    assert CliRunner().invoke(command, [text]).exit_code == 0
    assert found == [expected]
    for wrong in ("count", "0", "-1", "/3", "count/", "٣", str(1 << 32)):
        refused = CliRunner().invoke(command, ["--", wrong])
        assert refused.exit_code == 2, wrong
        assert f"{wrong!r} is no task" in refused.output

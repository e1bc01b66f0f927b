"""Renders the threads of a task for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from heron.spi.task_stacks import StackFrame, TaskStacks, ThreadStack

__all__ = ["stack_text"]

_STYLES = {"user": "bold", "library": "", "engine": "dim"}
_ROLES = {"task": "runs the component", "gateway": "serves the sockets"}


def stack_text(stacks: TaskStacks) -> Text:
    """Return the threads, each with its calls: the outermost first, those of user code with the mark ``>``."""
    process = f"pid {stacks.pid} on {stacks.host}"
    lines = [Text(f"{stacks.component}/{stacks.task_id} in container {stacks.container_id}: {process}")]
    for thread in stacks.threads:
        lines += [Text(), *_thread_lines(thread)]
    return Text("\n").join(lines)


def _thread_lines(thread: ThreadStack) -> Iterator[Text]:
    role = f" ({_ROLES[thread.role]})" if thread.role in _ROLES else ""
    style = "yellow" if thread.role == "task" else ""
    yield Text(f"thread {thread.name}{role}: {_state(thread)}; {thread.cpu_s:.1f} s of processor time", style=style)
    half = len(thread.frames) // 2
    for number, frame in enumerate(thread.frames):
        if thread.omitted and number == half:
            yield Text(f"            … {thread.omitted} more calls …", style="dim")
        yield from _frame_lines(frame)


def _state(thread: ThreadStack) -> str:
    if thread.state == "waits":
        return f"waits for {thread.waits_for}" if thread.waits_for else "waits"
    if thread.state == "running" and thread.role != "gateway":
        return f"runs, on a processor for {thread.cpu_share:.0%} of the time"
    return {"running": "runs", "ready": "is ready to run, and waits for a processor"}.get(
        thread.state, "in an unknown state"
    )


def _frame_lines(frame: StackFrame) -> Iterator[Text]:
    style = _STYLES.get(frame.origin, "")
    mark = ">" if frame.origin == "user" else " "
    yield Text(f"  {mark} {frame.origin:7}  {frame.file}, line {frame.line}, in {frame.function}", style=style)
    if frame.source:
        yield Text(f"               {frame.source}", style=style)

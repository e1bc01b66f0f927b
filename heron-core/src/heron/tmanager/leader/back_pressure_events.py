"""What is noted, and what observers hear, when back pressure by a task begins and ends. Pure."""

from __future__ import annotations

from heron.tmanager.leader.instructions import Instruction, NoteEvent, NotifyHook

__all__ = ["pressure_begun", "pressure_ended"]


def pressure_begun(culprit: dict[str, object], reporter: int, cause: str) -> list[Instruction]:
    """`culprit` has the topology, the component and the `task_id`; `reporter` is a container."""
    return [
        NoteEvent("backpressure-started", f"task-{culprit['task_id']}", {"reporter": str(reporter), "cause": cause}),
        NotifyHook("heron_backpressure_started", {**culprit, "cause": cause}),
    ]


def pressure_ended(culprit: dict[str, object], duration_s: float) -> list[Instruction]:
    """As `pressure_begun`, for the end."""
    return [
        NoteEvent("backpressure-ended", f"task-{culprit['task_id']}", {"duration_s": f"{duration_s:.3f}"}),
        NotifyHook("heron_backpressure_ended", {**culprit, "duration_s": duration_s}),
    ]

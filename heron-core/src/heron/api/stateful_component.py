"""Components whose state the engine keeps."""

from __future__ import annotations

from heron.api.state import State

__all__ = ["StatefulComponent"]


class StatefulComponent:
    """Mixed into a spout or bolt that keeps state.

    Limitation: without checkpoints, state lives in the task's memory and is lost when its process restarts.
    """

    def init_state(self, state: State) -> None:
        """Called once before `initialize`, with the state that was kept, or an empty one."""

    def pre_save(self, checkpoint_id: str) -> None:
        """Called just before the state is saved: the last chance to put into it what the component holds
        aside.
        """

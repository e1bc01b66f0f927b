"""The lifecycle events that any number of observers may follow: pluggy hook specifications, all in the past tense.

Observers never change what happens. Each is called singly, on a daemon thread of its own in executor and topology
manager; past its time limit (5 s) it is abandoned, named in the log and not called again.
"""

from __future__ import annotations

__all__ = ["HOOK_NAMES", "HookSpecs"]


class HookSpecs:
    """Implement any of these, with the same parameter names, in an object registered under ``heron.hooks``."""

    def heron_topology_submitted(self, topology: str, topology_id: str) -> None:
        """The topology's state is written and its containers are scheduled. Called in the command."""

    def heron_topology_ended(self, topology: str, topology_id: str, state: str) -> None:
        """The topology is finished, failed or killed. Called in the command that waited for it or killed it."""

    def heron_plan_changed(self, topology: str, version: int) -> None:
        """A new physical plan was written. Called in the topology manager."""

    def heron_container_started(self, topology: str, container_id: int, attempt: int) -> None:
        """The executor of a container has started its processes. Called in the executor."""

    def heron_process_died(self, topology: str, container_id: int, process: str, reason: str) -> None:
        """A child of an executor ended although it should not have. Called in the executor."""

    def heron_backpressure_started(self, topology: str, task_id: int) -> None:
        """A task became the culprit of back pressure. Called in the topology manager."""

    def heron_backpressure_ended(self, topology: str, task_id: int, duration_s: float) -> None:
        """The back pressure of that task was lifted. Called in the topology manager."""


HOOK_NAMES = tuple(name for name in vars(HookSpecs) if name.startswith("heron_"))

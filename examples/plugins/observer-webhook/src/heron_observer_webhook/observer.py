"""The observer: one method for each event, named as in `heron.spi.hooks`."""

from __future__ import annotations

from pathlib import Path

from heron_observer_webhook.target import Target, read_target

__all__ = ["Webhook"]


class Webhook:
    """Created once in each process that reports events, and called on a separate thread."""

    def __init__(self) -> None:
        self._target: Target = read_target(Path.home() / ".heron" / "webhook.json")

    def heron_topology_submitted(self, topology: str, topology_id: str) -> None:
        """Called in the command."""
        self._target.post("topology_submitted", topology=topology, topology_id=topology_id)

    def heron_topology_ended(self, topology: str, topology_id: str, state: str) -> None:
        """Called in the command."""
        self._target.post("topology_ended", topology=topology, topology_id=topology_id, state=state)

    def heron_topology_activated(self, topology: str) -> None:
        """Called in the topology manager."""
        self._target.post("topology_activated", topology=topology)

    def heron_topology_deactivated(self, topology: str) -> None:
        """Called in the topology manager."""
        self._target.post("topology_deactivated", topology=topology)

    def heron_plan_changed(self, topology: str, version: int) -> None:
        """Called in the topology manager."""
        self._target.post("plan_changed", topology=topology, version=version)

    def heron_backpressure_started(self, topology: str, component: str, task_id: int, cause: str) -> None:
        """Called in the topology manager."""
        self._target.post("backpressure_started", topology=topology, component=component, task_id=task_id, cause=cause)

    def heron_backpressure_ended(self, topology: str, component: str, task_id: int, duration_s: float) -> None:
        """Called in the topology manager."""
        self._target.post(
            "backpressure_ended", topology=topology, component=component, task_id=task_id, duration_s=duration_s
        )

    def heron_container_started(self, topology: str, container_id: int, attempt: int) -> None:
        """Called in the executor of each container."""
        self._target.post("container_started", topology=topology, container_id=container_id, attempt=attempt)

    def heron_process_died(self, topology: str, container_id: int, process: str, reason: str) -> None:
        """Called in the executor whose child died."""
        self._target.post("process_died", topology=topology, container_id=container_id, process=process, reason=reason)

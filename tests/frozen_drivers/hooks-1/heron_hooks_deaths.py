"""The observer ``deaths``: appends each death of a process and each end of a topology to a file."""

from __future__ import annotations

import json
import os
from pathlib import Path


class DeathJournal:
    """The variable DEATHS names the file."""

    def __init__(self) -> None:
        self._path = Path(os.environ.get("DEATHS", "deaths.jsonl"))

    def heron_process_died(self, topology: str, container_id: int, process: str, reason: str) -> None:
        self._append(topology=topology, container=container_id, process=process, reason=reason)

    def heron_topology_ended(self, topology: str, state: str) -> None:
        self._append(topology=topology, state=state)

    def heron_backpressure_started(self, topology: str, component: str, task_id: int, cause: str) -> None:
        self._append(topology=topology, task=f"{component}/{task_id}", cause=cause)

    def heron_backpressure_ended(self, topology: str, component: str, task_id: int, duration_s: float) -> None:
        self._append(topology=topology, task=f"{component}/{task_id}", duration_s=duration_s)

    def heron_container_started(self, topology: str, container_id: int, attempt: int) -> None:
        if attempt > 1:
            self._append(topology=topology, container=container_id, attempt=attempt)

    def _append(self, **facts: object) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")

"""A machine whose pollers tell how long they wait."""

from __future__ import annotations

import zmq  # noqa: TID251 - a poller is watched

from heron.ipc.machine import Machine

__all__ = ["WatchedMachine"]


class WatchedMachine(Machine):
    """Notes for how long its pollers wait, in ms."""

    def __init__(self) -> None:
        self.waits_ms: list[int | None] = []

    def poller(self) -> zmq.Poller:
        """A poller that notes its waits."""
        made = super().poller()
        poll = made.poll

        def noted(timeout: int | None = None) -> list[tuple[object, int]]:
            self.waits_ms.append(timeout)
            return poll(timeout)

        made.poll = noted  # type: ignore[method-assign]
        return made

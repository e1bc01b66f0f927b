"""A claim on a container, for machines that the supervisor may lose sight of.

Each attempt claims its container in the state manager with the number that its supervisor has given it. A higher number
means that the supervisor has started the container elsewhere, because it had lost this machine. So an attempt that
arrives late ends, and not its successor. If a record goes away, the job was killed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from heron.driver_kit.large_values import open_statemgr
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.managed.container_records import ContainerRecord, ContainerRecords

__all__ = ["Claim"]

_RETRY_S = 1.0


class Claim:
    """The claim of one attempt; a thread waits for the state manager as long as that is away."""

    def __init__(
        self, state: DriverRef, topology: tuple[str, str], container_id: int, number: int, lost: Callable[[str], None]
    ) -> None:
        """`topology` is name and run. `number` is higher than those of all earlier attempts of the container.

        `lost` is called from a thread with the reason, at most once.
        """
        self._state = state
        self._topology, self._topology_id = topology
        self._container_id = container_id
        self._lost = lost
        self._number = number
        self._claimed = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claim", daemon=True)
        self._thread.start()

    def close(self, limit_s: float) -> None:
        """Follow the container no longer."""
        self._closing.set()
        self._thread.join(limit_s)

    def _run(self) -> None:
        while not self._closing.is_set():
            statemgr: StateManager | None = None
            try:
                statemgr = open_statemgr(self._state)
                self._follow(ContainerRecords(statemgr, self._topology_id))
            except HeronError:  # the executor needs it too, and says why it cannot be used
                self._closing.wait(_RETRY_S)
            finally:
                if statemgr is not None:
                    statemgr.close()

    def _follow(self, records: ContainerRecords) -> None:
        if not self._claimed:
            if records.get(self._container_id) is None:
                records.add(self._topology, [self._container_id])
            mine = self._number
            records.change(self._container_id, lambda each: replace(each, attempts=max(each.attempts, mine)))
            self._claimed = True
        watch = records.watch(self._container_id, self._changed)
        try:
            self._closing.wait()
        finally:
            watch.close()

    def _changed(self, record: ContainerRecord | None) -> None:
        if self._closing.is_set():
            return
        if record is None:
            self._closing.set()
            self._lost("its job was killed")
        elif record.attempts > self._number:
            self._closing.set()
            self._lost("a later attempt runs elsewhere")

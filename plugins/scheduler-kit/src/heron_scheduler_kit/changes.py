"""Changes of a running job that take time: a stop, a restart of a container, an update of the set of containers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from heron.clock import monotonic_s
from heron_scheduler_kit.control import Message
from heron_scheduler_kit.executors import Placement
from heron_scheduler_kit.supervision import Container, ContainerState, Supervision

__all__ = ["Change", "Restart", "Stop", "Update"]

_NOT_BACK = frozenset({ContainerState.DOWN, ContainerState.ENDED, ContainerState.STOPPING, ContainerState.STOPPED})


class Change(Protocol):
    """A change in progress. The supervisor asks for its answer at each turn."""

    def answer(self) -> Message | None:
        """Advance as far as possible; return the answer to the command, or None while the change is in progress."""
        ...


class Stop:
    """Ends the whole job."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision

    def answer(self) -> Message | None:
        return {} if self._supervision.over() else None


class Restart:
    """Restarts one container; it must be up within `limit_s` seconds."""

    def __init__(self, container: Container, placement: Callable[[int], Placement], limit_s: float) -> None:
        self._container = container
        self._before = container.attempts
        self._placement = placement
        self._deadline_s = monotonic_s() + limit_s

    def answer(self) -> Message | None:
        each, name = self._container, f"container {self._container.container_id}"
        placement = self._placement(each.container_id)
        if each.attempts > self._before and (placement.up or each.state is ContainerState.ENDED):
            return {}
        if each.state in _NOT_BACK:
            return {"error": f"{name} did not come back: {each.last_error or 'it was stopped'}"}
        if each.attempts > self._before + 1 or monotonic_s() > self._deadline_s:
            return {"error": f"{name} is not back: {placement.waits or each.last_error or 'it is still being started'}"}
        return None


class _Phase(enum.Enum):
    ADDING = "adding"
    REMOVING = "removing"
    UNDOING = "undoing"
    DONE = "done"


class Update:
    """Adds containers, then removes others; after a failure it removes the added ones. `over` advances it.

    `stop` and `forget` act on containers. A repeated command may cause a second update of the same containers; both see
    the same removals.
    """

    def __init__(
        self,
        supervision: Supervision,
        placement: Callable[[int], Placement],
        stop: Callable[[Iterable[int]], None],
        forget: Callable[[Iterable[int]], None],
        limit_s: float,
    ) -> None:
        """The added containers must be up within `limit_s` seconds."""
        self._supervision = supervision
        self._placement = placement
        self._stop = stop
        self._forget = forget
        self._deadline_s = monotonic_s() + limit_s
        self._phase = _Phase.ADDING
        self._added: Sequence[Container] = ()
        self._removed: Sequence[Container] = ()
        self.error = ""

    def begin(self, added: Sequence[int], removed: Sequence[int]) -> None:
        """Begin with containers that are being started. Raises SchedulerError when one is unknown."""
        self._added, self._removed = list(map(self._container, added)), list(map(self._container, removed))

    def answer(self) -> Message | None:
        if not self.over():
            return None
        return {"error": self.error} if self.error else {}

    def over(self) -> bool:
        """Advance as far as possible; return whether the change is complete, or undone with an `error`."""
        if self._phase is _Phase.ADDING:
            if error := self._failure():
                self.error = error
                self._stop(self._present(self._added))
                self._phase = _Phase.UNDOING
            elif all(map(self._is_up, self._added)):
                self._stop(self._present(self._removed))
                self._phase = _Phase.REMOVING
        going = {_Phase.REMOVING: self._removed, _Phase.UNDOING: self._added}.get(self._phase)
        if going is not None and not any(each.running for each in going):
            self._forget(self._present(going))
            self._phase = _Phase.DONE
        return self._phase is _Phase.DONE

    def _container(self, container_id: int) -> Container:
        return self._supervision.container(container_id)

    def _present(self, containers: Sequence[Container]) -> list[int]:
        """The containers that are still in the job; a later container with the same id is another one."""
        there = self._supervision.containers()
        return [each.container_id for each in containers if any(each is one for one in there)]

    def _is_up(self, container: Container) -> bool:
        return container.state is ContainerState.ENDED or self._placement(container.container_id).up

    def _failure(self) -> str:
        for each in self._added:
            name = f"container {each.container_id}"
            if each.last_error:
                return f"{name} does not start: {each.last_error}"
            if each.state is ContainerState.STOPPED:
                return f"{name} was stopped meanwhile"
            if not self._is_up(each) and monotonic_s() > self._deadline_s:
                return f"{name} is not up: {self._placement(each.container_id).waits or 'it is still being started'}"
        return ""

"""A change of a job on its way: containers are added first, and others removed when those are up; else it is undone."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence

from heron.clock import monotonic_s
from heron_scheduler_kit.executors import Placement
from heron_scheduler_kit.supervision import Container, ContainerState, Supervision

__all__ = ["Update"]


class _Phase(enum.Enum):
    ADDING = "adding"
    REMOVING = "removing"
    UNDOING = "undoing"
    DONE = "done"


class Update:
    """Asked by `over` how far it is; `stop` and `forget` are what it has done to containers.

    Another update may be on its way for the same containers, of a command that was tried again: what that one has
    removed is gone for this one too.
    """

    def __init__(
        self,
        supervision: Supervision,
        placement: Callable[[int], Placement],
        stop: Callable[[Iterable[int]], None],
        forget: Callable[[Iterable[int]], None],
        limit_s: float,
    ) -> None:
        """What is added has `limit_s` seconds to be up."""
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
        """The added ones are being started. Raises SchedulerError when one is unknown."""
        self._added, self._removed = list(map(self._container, added)), list(map(self._container, removed))

    def over(self) -> bool:
        """Goes on as far as it can; whether all is done, or with an `error` undone."""
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
        """Those that are still in the job; one that came later under the same id is another one."""
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

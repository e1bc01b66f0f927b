"""The tenths of a second in which a gateway looks for what changes without an event, while its task is busy."""

from __future__ import annotations

from collections.abc import Callable

from heron.ipc.reactor import Reactor, Timer

__all__ = ["BusyPeriods"]

_PERIOD_S = 0.1
_QUIET = 2  # periods without an event: then nothing is left to adapt before the next event


class BusyPeriods:
    """Looks at the end of each period; a task in which nothing happens has none, so its gateway sleeps."""

    def __init__(self, reactor: Reactor, looks: tuple[Callable[[], object], ...], may_end: Callable[[], bool]) -> None:
        self._reactor = reactor
        self._looks = looks
        self._may_end = may_end
        self._timer: Timer | None = None
        self._quiet = 0

    def noting(self, call: Callable[[], object]) -> Callable[[], None]:
        """The call of an event: something has arrived, or is to be sent."""

        def noted() -> None:
            self._quiet = 0
            call()

        return noted

    def begin_if_due(self) -> None:
        """Begins a period if none runs and there is something to look for; called at the start and in each round."""
        if self._timer is None and not (self._quiet >= _QUIET and self._may_end()):
            self._timer = self._reactor.after(_PERIOD_S, self._end)

    def _end(self) -> None:
        self._timer = None
        self._quiet += 1
        for look in self._looks:
            look()

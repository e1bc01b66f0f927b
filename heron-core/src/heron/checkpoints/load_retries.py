"""Repeats loads from a checkpoint store that is away, so that an outage during a restore does not end the topology."""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.clock import monotonic_s, sleep
from heron.errors import CheckpointError, TornCheckpointError

__all__ = ["LoadRetries"]

_FIRST_PAUSE_S = 0.1
_LAST_PAUSE_S = 1.0  # also how late a request to stop is noticed

_log = logging.getLogger(__name__)


class LoadRetries:
    """Repeats each load for at most `limit_s` seconds, with growing pauses; ends early when `stopped`.

    A missing object may be in a folder that is not mounted, so it is tried again. An object that is torn is not.
    """

    def __init__(
        self,
        limit_s: float,
        stopped: Callable[[], bool],
        pause: Callable[[float], object] = sleep,
        now_s: Callable[[], float] = monotonic_s,
    ) -> None:
        self._limit_s = limit_s
        self._stopped = stopped
        self._pause = pause
        self._now_s = now_s

    def until_loaded(self, load: Callable[[], bytes]) -> bytes:
        """What `load` returns.

        Raises:
            CheckpointError: when `load` raised it until the end of the time limit.
            TornCheckpointError: when `load` raised it.
        """
        deadline_s = self._now_s() + self._limit_s
        pause_s, attempts = _FIRST_PAUSE_S, 0
        while True:
            attempts += 1
            try:
                return load()
            except TornCheckpointError:
                raise
            except CheckpointError as error:
                if self._stopped():
                    raise
                if self._now_s() + pause_s > deadline_s:
                    msg = (
                        f"{error}; {attempts} attempts within {self._limit_s:g} s have failed; repair the store, or "
                        "allow more time by heron.checkpoint.restore.timeout.s"
                    )
                    raise CheckpointError(msg) from error
                _log.warning("%s; next attempt in %.3g s", error, pause_s)
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _LAST_PAUSE_S)

"""Runs policies, which may come from third parties: one that raises or hangs is named, and the others go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from heron.driver_kit.loading import open_driver
from heron.errors import PluginError
from heron.spi.driver import DriverRef
from heron.spi.health import HealthPolicy
from heron.spi.health_values import Observation
from heron_health_manager.diagnosing.policy_round import Parts, Round, run_round

__all__ = ["LIMIT_S", "PolicyRunner"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

LIMIT_S = 10.0
"""The longest time of a round, as the contract says."""


class PolicyRunner:
    """One policy. Each round runs on a thread, because a call that hangs cannot be ended; it is abandoned."""

    def __init__(
        self,
        name: str,
        policy: HealthPolicy,
        limit_s: float = LIMIT_S,
        on_round: Callable[[Round], None] | None = None,
    ) -> None:
        """`on_round` is called with each round that ends in time, from the thread that runs it."""
        self.name = name
        self._policy = policy
        self._limit_s = limit_s
        self._on_round = on_round
        self._abandoned: threading.Thread | None = None
        self._parts = Parts()  # of the newest round
        self.rhythm = self._call(policy.rhythm)

    @classmethod
    def open(cls, ref: DriverRef, on_round: Callable[[Round], None] | None = None) -> PolicyRunner:
        """Open the policy.

        Raises:
            PluginError: when it does not load, or raises.
            ConfigError: when it refuses its options.
        """
        return cls(ref.name, open_driver(ref, HealthPolicy), on_round=on_round)

    def metrics(self) -> frozenset[str] | None:
        """The names of the metrics that its sensors read; None for any, also if it does not say."""
        try:
            names = [each.metrics for each in self._call(self._policy.sensors)]
        except PluginError as error:
            _log.warning("%s", error)
            return None
        return None if None in names else frozenset(name for each in names for name in each or ())

    def run(self, window: Sequence[Observation]) -> Round | None:
        """Run one round; None without observations.

        Raises:
            PluginError: when the policy raises, does not return in time, or has not returned from an earlier round.
        """
        if self._abandoned is not None and self._abandoned.is_alive():
            raise PluginError(self._hangs("yet"))
        parts = self._parts = Parts()
        found = self._call(lambda: run_round(self._policy, window, parts))
        if found is not None and self._on_round is not None:
            self._on_round(found)
        return found

    def _call(self, call: Callable[[], T]) -> T:
        results: list[T] = []
        errors: list[Exception] = []

        def work() -> None:
            try:
                results.append(call())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=work, name=f"policy-{self.name}", daemon=True)
        thread.start()
        thread.join(self._limit_s)
        if thread.is_alive():
            self._abandoned = thread
            raise PluginError(self._hangs(f"for {self._limit_s:g} s"))
        if errors:
            msg = f"policy {self.name!r} failed: {type(errors[0]).__name__}: {errors[0]}"
            raise PluginError(msg) from errors[0]
        return results[0]

    def _hangs(self, how_long: str) -> str:
        part = f"part {self._parts.running} of " if self._parts.running else ""
        return f"{part}policy {self.name!r} has not returned {how_long}; the policy is left out until it does"

"""Asks the server behind a driver whether it answers. For commands only."""

from __future__ import annotations

from collections.abc import Sequence

from heron.driver_kit.loading import open_driver
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.metricsink import MetricsSink
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron_cli.catalog.time_limit import within

__all__ = ["ask_server"]

_MARGIN_S = 1.0  # a driver that keeps to its limit says more than we can about one that does not


def ask_server(ref: DriverRef, timeout_s: float, others: Sequence[DriverRef] = ()) -> str:
    """Opens the driver, asks, and closes it; what answered, or "" where there is no server.

    A scheduler is told the `others` of its profile, which containers need.

    Raises:
        HeronError: when it does not open, or its server does not answer within `timeout_s` seconds; says why.
    """
    what = f"{ref.family} driver {ref.name!r}"
    base: type[Driver] = FAMILIES[ref.family]
    driver = within(timeout_s + _MARGIN_S, f"{what}: open", lambda: open_driver(ref, base))
    try:
        if isinstance(driver, Scheduler) and others:
            return within(timeout_s + _MARGIN_S, f"{what}: check", lambda: driver.check_places(others, timeout_s))
        return within(timeout_s + _MARGIN_S, f"{what}: check", lambda: driver.check(timeout_s))
    finally:
        if isinstance(driver, StateManager | MetricsSink):
            within(timeout_s + _MARGIN_S, f"{what}: close", driver.close)

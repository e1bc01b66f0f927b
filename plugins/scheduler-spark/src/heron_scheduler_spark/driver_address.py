"""Where the driver listens, and under which address the workers find it."""

from __future__ import annotations

from dataclasses import dataclass

from heron.errors import SchedulerError
from heron_scheduler_spark.master import Master
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.reach import address_towards, is_here, is_loopback

__all__ = ["DriverAddress", "driver_address"]


@dataclass(frozen=True, slots=True)
class DriverAddress:
    """Workers connect to `host`; it listens at `bind`, which differs where addresses are translated on the way."""

    host: str
    bind: str


def driver_address(options: SparkOptions, master: Master) -> DriverAddress:
    """As the profile says, else the address from which the master is reached.

    Raises:
        SchedulerError: when nobody could listen or connect there; names the option.
    """
    host = options.driver_host or address_towards(master)
    bind = options.driver_bind or host
    if not is_here(bind):
        name = "driver_bind" if options.driver_bind else "driver_host"
        remedy = "name one, or 0.0.0.0" if options.driver_bind else "name one, or set scheduler.driver_bind to one too"
        msg = f"scheduler.{name}: {bind!r} is no address of this machine; {remedy}"
        raise SchedulerError(msg)
    if _has_workers_elsewhere(master) and is_loopback(host):
        msg = (
            f"scheduler.driver_host: workers of {master.url} do not reach this machine at {host}; set it to an address "
            "of this machine that they reach"
        )
        raise SchedulerError(msg)
    return DriverAddress(host, bind)


def _has_workers_elsewhere(master: Master) -> bool:
    """A pod has a loopback of its own, and so has a machine that is not that of the resource manager."""
    if master.pods:
        return True
    return any(not is_loopback(host) for host, _ in master.addresses)

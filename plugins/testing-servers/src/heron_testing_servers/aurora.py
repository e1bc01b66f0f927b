"""Aurora on the loopback address, written from its published interface: a scheduler, and hosts that run processes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heron_testing.ports import free_port
from heron_testing_servers.contract_server import ContractServer

__all__ = ["FIXTURES", "AuroraCluster"]

FIXTURES = ("aurora",)

Json = dict[str, Any]

_TIMES = {"flapping_s": 5.0, "first_delay_s": 0.2, "longest_delay_s": 2.0, "grace_s": 5.0, "lost_s": 1.0}
_SIZE = (8.0, 16384.0, 65536.0)
_ENOUGH = (1e6, 1e9, 1e9)
_PORTS = 50  # of a host


class AuroraCluster(ContractServer):
    """A scheduler with the hosts ``host-0`` and so on. Tasks survive a killed scheduler; `kill` ends them too.

    Each host has an address of its own on the loopback network, which is its host name: 127.0.0.2 and so on. `url` is
    the address of the scheduler, and its API is at ``/api``.
    """

    def __init__(
        self,
        folder: Path,
        hosts: Sequence[tuple[Sequence[float], Mapping[str, Sequence[str]]]] | None = None,
        users: Mapping[str, Json] | None = None,
        quotas: Mapping[str, Sequence[float]] | None = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        """Do not start it yet.

        Args:
            folder: for its state, its log and the sandboxes.
            hosts: cores, MB of memory, MB of disk, and the attributes of each; by default two, in the racks a and b.
            users: by name: ``password``, and ``permissions`` as in Shiro, for example
                ``thrift.AuroraSchedulerManager:*:www``; all without. Without users there is no authentication.
            quotas: cores, MB of memory, MB of disk by role; ``*`` is for all others, by default enough.
            times: in seconds, other than flapping_s 5 (a task that ends earlier is penalized), first_delay_s 0.2 and
                longest_delay_s 2 (of the penalty), grace_s 5 (from SIGTERM to SIGKILL), lost_s 1 (of a host).
        """
        folder.mkdir(parents=True, exist_ok=True)
        default = [(_SIZE, {"rack": [rack]}) for rack in "ab"]
        # Below the ports that the system gives out, and not those of other hosts and other runs of tests.
        first = 20000 + os.getpid() % 40 * 2 * _PORTS
        port = free_port()  # the observers of a cluster have one port
        made = [
            {
                "name": f"host-{number}", "hostname": f"127.0.0.{number + 2}", "port": port,
                "total": list(total),
                "first_port": first + number * _PORTS, "last_port": first + (number + 1) * _PORTS - 1,
                "attributes": {name: list(values) for name, values in attributes.items()},
            }
            for number, (total, attributes) in enumerate(default if hosts is None else hosts)
        ]  # fmt: skip
        options: Json = {
            "hosts": made,
            "users": dict(users or {}),
            "quotas": {"*": _ENOUGH, **(quotas or {})},
            "times": {**_TIMES, **(times or {})},
        }
        super().__init__(f"{__package__}.aurora_parts.server", folder, **options)

    def hosts(self) -> dict[str, Json]:
        """Return for each host by its name: mode, hostname, url (of its observer)."""
        return dict(self.control("GET", "hosts"))

    def change_host(self, name: str, mode: str) -> None:
        """Lose the machine of a host with its tasks (``down``), its network (``partitioned``), or none (``up``)."""
        self.control("POST", "hosts", {"name": name, "mode": mode})

"""The node HOSTS: what one topology has measured of the hosts of its containers.

A report counts for three minutes, so the report of a topology that died expires by itself.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node

__all__ = ["COUNTS_S", "MOST_HOSTS", "HostReport", "HostSigns", "decode_host_report", "encode_host_report"]

_FORMAT: Final = 1

COUNTS_S: Final = 180.0
"""A health manager writes every 15 s; it may be restarted, or its state manager be away for a minute or two."""

MOST_HOSTS: Final = 64
"""Of a report, which so has at most 16 kB."""


class HostSigns(msgspec.Struct, frozen=True):
    """One host as one topology sees it.

    `slowdown` is how many times as long its tasks need for a tuple as tasks of the same components elsewhere: the
    median of the components; None if nothing can be compared. `deaths` are the restarts of one task there within 10
    min, of that which died most often, because a container that is restarted in order restarts all of its tasks.
    `looks` is in how many looks in a row, up to the newest one, the host was bad.
    """

    host: str
    tasks: int
    slowdown: float | None = None
    deaths: int = 0
    looks: int = 0

    @property
    def badness(self) -> float:
        """A number by which hosts are ordered: larger is worse."""
        return max(self.slowdown or 1.0, 1.0) + self.deaths


class HostReport(msgspec.Struct, frozen=True):
    """What one run has measured; `at_s` is wall-clock seconds. The worst hosts come first."""

    topology: str
    topology_id: str
    at_s: float
    hosts: tuple[HostSigns, ...] = ()

    def counts(self, now_s: float) -> bool:
        """Whether the report is new enough at `now_s`. One from the future counts, because clocks differ a little."""
        return abs(now_s - self.at_s) <= COUNTS_S


def encode_host_report(report: HostReport) -> bytes:
    """The value of the node, with at most `MOST_HOSTS` hosts."""
    worst = sorted(report.hosts, key=lambda each: (-each.badness, each.host))[:MOST_HOSTS]
    kept = HostReport(report.topology, report.topology_id, report.at_s, tuple(worst))
    return encode_node(kept, _FORMAT)


def decode_host_report(data: bytes, topology: str) -> HostReport:
    """The inverse of `encode_host_report`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    return decode_node(data, HostReport, _FORMAT, (NodeKind.HOSTS, topology), "report of hosts")

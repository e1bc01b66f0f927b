"""What a Spark master's name says: which kind of cluster it is, and where it is to be found. Pure."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from heron.errors import SchedulerError

__all__ = ["Cluster", "Master", "parse_master"]

_LOCAL = re.compile(r"local(\[[^\]]*\])?")
_STANDALONE = re.compile(r"spark://(?P<hosts>[^/,:\s]+:\d+(,[^/,:\s]+:\d+)*)")
_FORMS = "known: local, spark://HOST:PORT, yarn, k8s://URL"


class Cluster(enum.Enum):
    """What gives executors to an application."""

    LOCAL = "local"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Master:
    """A master; `addresses` are where a standalone one listens."""

    url: str
    cluster: Cluster
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def here(self) -> bool:
        """Whether tasks are on this machine and see its files."""
        return self.cluster is Cluster.LOCAL


def parse_master(written: str) -> Master:
    """The master of that name.

    Raises:
        SchedulerError: when Spark knows no such form; lists those it does.
    """
    if _LOCAL.fullmatch(written):
        return Master("local", Cluster.LOCAL)
    if found := _STANDALONE.fullmatch(written):
        pairs = (each.rpartition(":") for each in found["hosts"].split(","))
        return Master(written, Cluster.STANDALONE, tuple((host, int(port)) for host, _, port in pairs))
    if written == "yarn":
        return Master(written, Cluster.YARN)
    if written.startswith("k8s://"):
        return Master(written, Cluster.KUBERNETES)
    msg = f"scheduler.master: {written!r} is no Spark master; {_FORMS}"
    raise SchedulerError(msg)

"""What a Spark master's name says: which kind of cluster it is, and where it is to be found. Pure."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from heron.errors import SchedulerError

__all__ = ["Cluster", "Master", "parse_master"]

_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?")  # how many slots it has is not for the user to say
_STANDALONE = re.compile(r"spark://(?P<hosts>[^/,:\s]+:\d+(,[^/,:\s]+:\d+)*)")
_KUBERNETES = re.compile(r"k8s://(?P<scheme>https?://)?(?P<host>\[[^\]]+\]|[^/:\s]+)(:(?P<port>\d+))?(/\S*)?")
_FORMS = "known: local, spark://HOST:PORT, yarn, k8s://URL"


class Cluster(enum.Enum):
    """What gives executors to an application."""

    LOCAL = "local"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Master:
    """A master; `addresses` are where it listens, as far as its name says."""

    url: str
    cluster: Cluster
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def here(self) -> bool:
        """Whether tasks are on this machine and see its files."""
        return self.cluster is Cluster.LOCAL

    @property
    def counts_heap_only(self) -> bool:
        """Whether the heap of a JVM is all the memory that is asked for."""
        return self.cluster is Cluster.STANDALONE

    @property
    def pods(self) -> bool:
        """Whether each worker has network addresses of its own, the loopback among them."""
        return self.cluster is Cluster.KUBERNETES


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
    if found := _KUBERNETES.fullmatch(written):
        port = int(found["port"] or (80 if found["scheme"] == "http://" else 443))
        return Master(written, Cluster.KUBERNETES, ((found["host"].strip("[]"), port),))
    msg = f"scheduler.master: {written!r} is no Spark master; {_FORMS}"
    raise SchedulerError(msg)

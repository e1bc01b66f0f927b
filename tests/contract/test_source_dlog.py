"""`DlogSource` keeps the contract of sources, with real bookies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.connectors.feeds import SourceFeed
from heron_testing.contracts.source import SourceContract
from heron_testing_servers.distributedlog import DistributedLogCluster

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_NUMBERS = itertools.count()


class LogFeed(SourceFeed):
    """A log for each partition."""

    def __init__(self, cluster: DistributedLogCluster, partitions: int) -> None:
        self._cluster = cluster
        self._begin = f"feed{next(_NUMBERS)}-"
        for number in range(partitions):
            cluster.streams.make(f"{self._begin}{number}")
        self.given = {"uri": cluster.uri, "jars": f"{cluster.jars}/*", "streams": f"{self._begin}*"}

    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Append records."""
        for begin in range(0, len(texts), 1000):
            self._cluster.streams.write(f"{self._begin}{partition}", texts[begin : begin + 1000])

    def stop_server(self) -> None:
        """Kill the bookies."""
        for each in self._cluster.bookies:
            each.kill()

    def start_server(self) -> None:
        """Start them on their data."""
        self._cluster.start()


class TestDlogSource(SourceContract):
    """Each log is a partition."""

    program = Path(__file__).parent / "programs" / "read_log.py"
    partitions = 4
    tells_backlog = True

    @pytest.fixture
    def feed(self, distributedlog: DistributedLogCluster, sandbox: Sandbox) -> SourceFeed:
        """Logs of this test."""
        distributedlog.start()
        sandbox.environ["XDG_CACHE_HOME"] = str(distributedlog.cache)
        return LogFeed(distributedlog, self.partitions)

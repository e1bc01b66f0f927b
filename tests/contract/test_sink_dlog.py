"""`DlogSink` keeps the contract of sinks, with and without a folder, with real bookies."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.connectors.feeds import SinkTarget
from heron_testing.contracts.sink import SinkContract
from heron_testing_servers.distributedlog import DistributedLogCluster

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_NUMBERS = itertools.count()
_WRITE_LOG = Path(__file__).parent / "programs" / "write_log.py"
_MOST_TASKS = 3


class LogTarget(SinkTarget):
    """The logs of the tasks."""

    def __init__(self, cluster: DistributedLogCluster, folder: Path | None) -> None:
        cluster.start()
        self._cluster = cluster
        self._stream = f"target{next(_NUMBERS)}"
        place = None if folder is None else str(folder)
        self.given = {"uri": cluster.uri, "jars": f"{cluster.jars}/*", "stream": self._stream, "folder": place}

    def written(self) -> list[str]:
        """Of one log after the other."""
        names = [f"{self._stream}-{number}" for number in range(_MOST_TASKS)]
        return [text for name in names for text in self._cluster.streams.read(name)]

    def stop_server(self) -> None:
        """Kill the bookies."""
        for each in self._cluster.bookies:
            each.kill()

    def start_server(self) -> None:
        """Start them on their data."""
        self._cluster.start()


class TestDlogSink(SinkContract):
    """Without a folder, some records are there twice after a death."""

    program = _WRITE_LOG
    exact = False

    @pytest.fixture
    def target(self, distributedlog: DistributedLogCluster, sandbox: Sandbox) -> SinkTarget:
        """Logs of this test."""
        sandbox.environ["XDG_CACHE_HOME"] = str(distributedlog.cache)
        return LogTarget(distributedlog, None)


class TestDlogSinkWithFolder(SinkContract):
    """Each record once. After an update the records of a partition go on in another log, so there is no order."""

    program = _WRITE_LOG
    ordered = False
    bounded_while_away = False  # as for Kafka, more than the suite waits for is on disk then

    @pytest.fixture
    def target(self, distributedlog: DistributedLogCluster, sandbox: Sandbox, tmp_path: Path) -> SinkTarget:
        """Logs of this test, and a folder for what waits."""
        sandbox.environ["XDG_CACHE_HOME"] = str(distributedlog.cache)
        return LogTarget(distributedlog, tmp_path / "staging")

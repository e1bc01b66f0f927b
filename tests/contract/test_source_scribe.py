"""`ScribeSource` keeps the contract of sources, with a real client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pytest

from heron_connector_scribe import announced
from heron_testing.connectors.feeds import SourceFeed
from heron_testing.contracts.source import SourceContract
from heron_testing.ports import free_port
from heron_testing_servers.scribe_clients import ScribeClients

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun

_BATCH = 100  # effectively once a client has one answer for each checkpoint


class ClientFeed(SourceFeed):
    """A client for each partition, which logs to its own collector."""

    def __init__(self, clients: ScribeClients, folder: Path) -> None:
        self._clients, self._folder, self._lock = clients, folder, Lock()
        ports = (free_port(), free_port())
        self._addresses = [("127.0.0.1", port) for port in ports]
        limits = {"pending_bytes": 8_000_000, "frame_bytes": 2_000_000}
        self.given = {"ports": list(ports), "announce": str(folder), **limits}

    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Log messages, each batch until it is accepted."""
        with self._lock:  # clients are numbered
            client = self._clients.log("facebook", [self._addresses[partition]], f"p{partition}", texts, _BATCH)
        client.finished()

    def began(self, run: HeronRun) -> None:
        """Wait for the collectors."""
        run.until(lambda: self._folder.exists() and announced(self._folder) == self._addresses, "collectors")


class TestScribeSource(SourceContract):
    """The source is the server; a collector is a partition."""

    program = Path(__file__).parent / "programs" / "read_scribe.py"
    listens = True
    server_goes_away = False

    @pytest.fixture
    def feed(self, scribe_clients: ScribeClients, tmp_path: Path) -> SourceFeed:
        """Clients and ports of this test."""
        return ClientFeed(scribe_clients, tmp_path / "collectors")

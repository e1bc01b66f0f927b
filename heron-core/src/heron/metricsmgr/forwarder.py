"""Passes records on to the topology manager; while there is none, the newest wait."""

from __future__ import annotations

from collections import deque

from heron.ipc.envelope import Envelope
from heron.ipc.keys import ClientKeys
from heron.ipc.locator import TManagerChannel
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.spi.metricsink import Metric

__all__ = ["Forwarder"]

_KEPT = 1000  # records; counters are totals, so only events are ever missed


class Forwarder:
    """Sends as the records come."""

    def __init__(self, reactor: Reactor, sockets: SocketContext, executor_endpoint: str, keys: ClientKeys) -> None:
        self._waiting: deque[Envelope] = deque(maxlen=_KEPT)
        self._channel = TManagerChannel(
            reactor,
            sockets,
            executor_endpoint,
            keys=keys,
            process="metricsmgr",
            on_connect=self._send_waiting,
            on_envelope=lambda _: None,
        )

    def send(self, envelope: Envelope) -> None:
        """Sends a record, or keeps it."""
        if not self._channel.send(envelope):
            self._waiting.append(envelope)

    def metrics(self) -> tuple[Metric, ...]:
        """What was refused of what topology managers said."""
        return self._channel.metrics()

    def _send_waiting(self) -> None:
        while self._waiting and self._channel.send(self._waiting[0]):
            self._waiting.popleft()

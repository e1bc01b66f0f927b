"""The shell of the metrics manager: from its inbox to every sink and to the topology manager."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from heron.clock import monotonic_s, wall_s
from heron.errors import RemoteProtocolError
from heron.ipc.envelope import Envelope, body_of, parse_control
from heron.ipc.metrics_codec import publish_message, record_of
from heron.ipc.process_metrics import process_metrics
from heron.ipc.socket import Inbox
from heron.metricsmgr.forwarder import Forwarder
from heron.metricsmgr.sink_runner import SinkRunner
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, Source

__all__ = ["MetricsManager"]

_RECORDS_A_ROUND = 256  # then timers have their turn

_log = logging.getLogger(__name__)


class MetricsManager:
    """Never waits for a sink."""

    def __init__(self, inbox: Inbox, sinks: Sequence[SinkRunner], forwarder: Forwarder, source: Source) -> None:
        self._inbox = inbox
        self._sinks = sinks
        self._forwarder = forwarder
        self._source = source
        self._taken = 0
        self._garbled = 0

    def read(self) -> None:
        """Takes what has arrived."""
        for _ in range(_RECORDS_A_ROUND):
            if not self._read_one():
                return

    def report(self) -> None:
        """Its own record; called each export interval."""
        metrics = (
            Metric("records-taken", MetricKind.COUNTER, "records", self._taken),
            Metric("records-garbled", MetricKind.COUNTER, "records", self._garbled),
            *(metric for sink in self._sinks for metric in sink.metrics()),
            *self._forwarder.metrics(),
            *process_metrics(),
        )
        record = MetricsRecord(self._source, wall_s(), metrics)
        self._pass_on(record, Envelope(metrics_publish=publish_message(record)))

    @property
    def arrived(self) -> int:
        """How many frames have come."""
        return self._taken + self._garbled

    def close(self, timeout_s: float) -> None:
        """Lets the sinks finish within `timeout_s` in all, after a last record."""
        deadline_s = monotonic_s() + timeout_s
        self.report()
        for sink in self._sinks:
            sink.close()
        for sink in self._sinks:
            sink.join(deadline_s - monotonic_s())

    def _read_one(self) -> bool:
        frame = self._inbox.receive()
        if frame is None:
            return False
        try:
            envelope = parse_control(frame)
            if body_of(envelope) != "metrics_publish":
                msg = f"{body_of(envelope)} is not for a metrics manager"
                raise RemoteProtocolError(msg)
        except RemoteProtocolError as error:
            if not self._garbled:
                _log.warning("a record is dropped, more are counted: %s", error)
            self._garbled += 1
            return True
        self._taken += 1
        self._pass_on(record_of(envelope.metrics_publish), envelope)
        return True

    def _pass_on(self, record: MetricsRecord, envelope: Envelope) -> None:
        for sink in self._sinks:
            sink.offer(record)
        self._forwarder.send(envelope)

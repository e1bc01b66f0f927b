"""The process of a metrics manager: reads its inbox, feeds every sink, and forwards to the topology manager."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from heron.clock import monotonic_s, wall_s
from heron.errors import RemoteProtocolError, Violation
from heron.ipc.envelope import Envelope, body_of, parse_control
from heron.ipc.frames.metrics_codec import publish_message, record_of
from heron.ipc.locator import KeySource, TManagerChannel
from heron.ipc.process_metrics import process_metrics
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Inbox, SocketContext
from heron.ipc.violations import Violations
from heron.metricsmgr.host_metrics import HostMetrics
from heron.metricsmgr.sink_runner import SinkRunner
from heron.spi.metricsink import Metric, MetricKind, MetricsRecord, Source

__all__ = ["MetricsForwarder", "MetricsManager"]

_RECORDS_A_ROUND = 256  # then timers run
_KEPT = 1000  # records; counters are totals, so only events can be missed

_log = logging.getLogger(__name__)


class MetricsForwarder:
    """Forwards records to the topology manager; while there is none, it keeps the newest records."""

    def __init__(self, reactor: Reactor, sockets: SocketContext, executor_endpoint: str, keys: KeySource) -> None:
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
        """The metrics of the channel to the topology manager."""
        return self._channel.metrics()

    def _send_waiting(self) -> None:
        while self._waiting and self._channel.send(self._waiting[0]):
            self._waiting.popleft()


class MetricsManager:
    """Passes each record to every sink and to the topology manager; never waits for a sink."""

    def __init__(
        self,
        inbox: Inbox,
        sinks: Sequence[SinkRunner],
        forwarder: MetricsForwarder,
        source: Source,
        host: HostMetrics | None = None,
    ) -> None:
        self._host = host or HostMetrics()
        self._inbox = inbox
        self._sinks = sinks
        self._forwarder = forwarder
        self._source = source
        self._taken = 0
        self._violations = Violations(_log)

    @property
    def arrived(self) -> int:
        """The number of frames that have arrived."""
        return self._taken + self._violations.total()

    def read(self) -> None:
        """Processes the frames that have arrived, up to a limit."""
        for _ in range(_RECORDS_A_ROUND):
            if not self._read_one():
                return

    def report(self) -> None:
        """Passes on the metrics manager's own record; called each export interval."""
        for sink in self._sinks:
            sink.offer(self._own_record(with_problems=False))
        own = self._own_record(with_problems=True)
        self._forwarder.send(Envelope(metrics_publish=publish_message(own)))

    def check_sinks(self) -> None:
        """Reports at once when a sink starts to fail or hang, or works again; called every second."""
        changed = [sink for sink in self._sinks if sink.check()]
        if changed:
            self.report()

    def close(self, timeout_s: float) -> None:
        """Passes on a last record and gives the sinks `timeout_s` in total to finish."""
        deadline_s = monotonic_s() + timeout_s
        self.report()
        for sink in self._sinks:
            sink.close()
        for sink in self._sinks:
            sink.join(deadline_s - monotonic_s())

    def _own_record(self, *, with_problems: bool) -> MetricsRecord:
        metrics = (
            Metric("records-taken", MetricKind.COUNTER, "records", self._taken),
            Metric("records-garbled", MetricKind.COUNTER, "records", self._violations.total()),
            *self._violations.metrics(),
            *(metric for sink in self._sinks for metric in sink.metrics(with_problem=with_problems)),
            *self._forwarder.metrics(),
            *process_metrics(),
            *self._host.metrics(),
        )
        return MetricsRecord(self._source, wall_s(), metrics)

    def _read_one(self) -> bool:
        frame = self._inbox.receive()
        if frame is None:
            return False
        try:
            envelope = parse_control(frame)
            if body_of(envelope) != "metrics_publish":
                msg = f"message {body_of(envelope)} is not for a metrics manager"
                raise RemoteProtocolError(msg, Violation.KIND)
        except RemoteProtocolError as error:
            self._violations.note("metrics", error.violation, f"dropped a record: {error}", level=logging.WARNING)
            return True
        self._taken += 1
        if self._sinks:
            record = record_of(envelope.metrics_publish)
            for sink in self._sinks:
                sink.offer(record)
        self._forwarder.send(envelope)
        return True

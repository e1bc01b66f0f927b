"""The link to the topology manager that leads; refuses messages of a deposed one.

The executor of the container sends the location of the leader, now and at each change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metric_names import DEPOSED_MESSAGES
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, SocketContext
from heron.ipc.violations import Violations, violation_of
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["KeySource", "TManagerChannel"]

_log = logging.getLogger(__name__)

_RECONNECT_S = 0.1  # the pause before a new attempt, so that a refusal does not cost all processor time


class KeySource(Protocol):
    """The keys of the process, which change while it runs."""

    def of_server(self, server_public: str) -> ClientKeys | None:
        """The keys for the server with that public key; None when this process does not have them."""
        ...

    def take(self, version: int) -> object:
        """Follows the version of the node KEYS that the executor has now."""
        ...


class TManagerChannel:
    """A channel to the topology manager that leads.

    `on_connect` is called for each new leader, and again after the connection to a leader was broken, because the
    leader has forgotten this process then. `on_envelope` is called with each message whose epoch is not older than the
    newest one; it raises RemoteProtocolError for a message that it cannot read. Messages of a deposed leader are
    refused and counted in `deposed`. The link to a former leader is read for this purpose until its other end closes
    it.
    """

    def __init__(
        self,
        reactor: Reactor,
        sockets: SocketContext,
        executor_endpoint: str,
        *,
        keys: KeySource,
        process: str,
        on_connect: Callable[[], None],
        on_envelope: Callable[[Envelope], None],
    ) -> None:
        self._reactor = reactor
        self._sockets = sockets
        self._keys = keys
        self._on_connect = on_connect
        self._on_envelope = on_envelope
        self._endpoint = self._server_key = ""
        self._epoch = 0
        self._channel: Channel | None = None
        self._former: Channel | None = None
        self.deposed = 0
        self._violations = Violations(_log)
        self._executor = sockets.client_of(executor_endpoint)
        reactor.on_readable(self._executor, self._read_executor)
        self._executor.send(control_frame(Envelope(location_request=pb.LocationRequest(process=process))))

    def send(self, envelope: Envelope) -> bool:
        """Sends to the topology manager; False when none is known now."""
        if self._channel is None:
            return False
        self._channel.send(control_frame(envelope))
        return True

    def metrics(self) -> tuple[Metric, ...]:
        """The number of refused messages."""
        deposed = Metric(DEPOSED_MESSAGES, MetricKind.COUNTER, "messages", self.deposed)
        return (deposed, *self._violations.metrics())

    @property
    def refused(self) -> int:
        """The number of messages that broke the protocol."""
        return self._violations.total()

    def _read_executor(self) -> None:
        while (frame := self._executor.receive()) is not None:
            try:
                envelope = parse_control(frame)
                if body_of(envelope) != "tmanager_location":
                    msg = f"{body_of(envelope)} from an executor"
                    raise RemoteProtocolError(msg, Violation.KIND)
                try:
                    self._keys.take(envelope.tmanager_location.keys)
                finally:  # the executor sends each location once
                    self._locate(envelope.tmanager_location)
            except HeronError as error:
                message = f"refused a message of the executor: {error}"
                self._violations.note("executor", violation_of(error), message)

    def _locate(self, location: pb.TManagerLocation) -> None:
        is_known = (location.endpoint, location.server_key) == (self._endpoint, self._server_key)
        if location.epoch < self._epoch or (is_known and self._channel is not None):
            return
        self._leave()
        self._endpoint, self._server_key = location.endpoint, location.server_key
        self._epoch = location.epoch
        if location.endpoint:
            self._connect()

    def _connect(self) -> None:
        keys = self._keys.of_server(self._server_key)
        if keys is None:  # the executor sends the location again when it has them
            _log.warning("the topology manager at %s has other keys than this process", self._endpoint)
            return
        channel = self._channel = self._sockets.client_of(self._endpoint, keys=keys)
        self._reactor.on_readable(channel, self._read)
        self._reactor.on_disconnect(channel, lambda: self._disconnected(channel))
        self._on_connect()

    def _disconnected(self, channel: Channel) -> None:
        if channel is self._former:
            self._read_former()  # its last messages
            self._forget_former()
        if channel is self._channel:
            self._read()
            self._close(channel)
            self._channel = None
            endpoint = self._endpoint
            self._reactor.after(_RECONNECT_S, lambda: self._reconnect(endpoint))

    def _reconnect(self, endpoint: str) -> None:
        if self._channel is None and endpoint and endpoint == self._endpoint:
            self._connect()

    def _leave(self) -> None:
        """Keeps the channel as the former leader's: the process may not know yet that it is deposed."""
        former, self._channel = self._channel, None
        if former is not None:
            self._forget_former()
            self._former = former
            self._reactor.on_readable(former, self._read_former)

    def _read_former(self) -> None:
        while self._former is not None and self._former.receive() is not None:
            self.deposed += 1

    def _forget_former(self) -> None:
        if self._former is not None:
            self._close(self._former)
            self._former = None

    def _close(self, channel: Channel) -> None:
        self._reactor.forget(channel)
        channel.close()

    def _read(self) -> None:
        while self._channel is not None and (frame := self._channel.receive()) is not None:
            try:
                self._take(parse_control(frame))
            except RemoteProtocolError as error:
                message = f"refused a message of the topology manager at {self._endpoint}: {error}"
                self._violations.note("topology-manager", error.violation, message)

    def _take(self, envelope: Envelope) -> None:
        if envelope.epoch < self._epoch:
            self.deposed += 1
            return
        self._epoch = envelope.epoch
        self._on_envelope(envelope)

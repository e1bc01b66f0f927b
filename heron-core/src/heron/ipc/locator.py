"""Where the topology manager is: a process of a container asks its executor, and hears of every change."""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, SocketContext

__all__ = ["TManagerChannel"]

_log = logging.getLogger(__name__)

_RECONNECT_S = 0.1  # who is refused asks again, but not without pause


class TManagerChannel:
    """A channel to the present topology manager, whoever that is.

    `on_connect` is called with each new one, and again when the connection to it was broken, as it then knows this
    process no more; `on_envelope` with what it says, if its epoch is not older than the newest seen (an older one is a
    deposed leader's: refused and counted in `refused`).
    """

    def __init__(
        self,
        reactor: Reactor,
        sockets: SocketContext,
        executor_endpoint: str,
        *,
        keys: ClientKeys,
        process: str,
        on_connect: Callable[[], None],
        on_envelope: Callable[[Envelope], None],
    ) -> None:
        self._reactor = reactor
        self._sockets = sockets
        self._keys = keys
        self._on_connect = on_connect
        self._on_envelope = on_envelope
        self._endpoint = ""
        self._epoch = 0
        self._channel: Channel | None = None
        self.refused = 0
        self._executor = sockets.client_of(executor_endpoint)
        reactor.on_readable(self._executor, self._read_executor)
        self._executor.send(control_frame(Envelope(location_request=pb.LocationRequest(process=process))))

    def send(self, envelope: Envelope) -> bool:
        """Sends to the topology manager; False when there is none at the moment."""
        if self._channel is None:
            return False
        self._channel.send(control_frame(envelope))
        return True

    def _read_executor(self) -> None:
        while (frame := self._executor.receive()) is not None:
            try:
                envelope = parse_control(frame)
            except RemoteProtocolError as error:
                self.refused += 1
                _log.error("the executor broke the rules: %s", error)
                continue
            if body_of(envelope) == "tmanager_location":
                self._locate(envelope.tmanager_location)

    def _locate(self, location: pb.TManagerLocation) -> None:
        if location.epoch < self._epoch or location.endpoint == self._endpoint:
            return
        self._disconnect()
        self._endpoint = location.endpoint
        self._epoch = location.epoch
        if location.endpoint:
            self._connect()

    def _connect(self) -> None:
        channel = self._channel = self._sockets.client_of(self._endpoint, keys=self._keys)
        self._reactor.on_readable(channel, self._read)
        self._reactor.on_disconnect(channel, lambda: self._broken(channel))
        self._on_connect()

    def _broken(self, channel: Channel) -> None:
        if channel is self._channel:
            self._read()  # its last words
        if channel is self._channel:
            self._disconnect()
            endpoint = self._endpoint
            self._reactor.after(_RECONNECT_S, lambda: self._again(endpoint))

    def _again(self, endpoint: str) -> None:
        if self._channel is None and endpoint and endpoint == self._endpoint:
            self._connect()

    def _disconnect(self) -> None:
        if self._channel is not None:
            self._reactor.forget(self._channel)
            self._channel.close()
            self._channel = None

    def _read(self) -> None:
        while self._channel is not None and (frame := self._channel.receive()) is not None:
            try:
                envelope = parse_control(frame)
            except RemoteProtocolError as error:
                self.refused += 1
                _log.error("the topology manager at %s broke the rules: %s", self._endpoint, error)
                continue
            if envelope.epoch < self._epoch:
                self.refused += 1
                continue
            self._epoch = envelope.epoch
            self._on_envelope(envelope)

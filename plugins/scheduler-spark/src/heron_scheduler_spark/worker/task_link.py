"""The task's end of the link to the driver: typed messages over an encrypted socket, with heartbeats both ways."""

from __future__ import annotations

import socket

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.links import ClientKeys, SocketContext, open_watched_channel
from heron.errors import HeronError, SchedulerError
from heron_scheduler_spark.messages.task_messages import (
    FRAME_BYTES,
    DriverCommand,
    TaskHeartbeat,
    TaskHello,
    TaskMessage,
)

__all__ = ["TaskLink"]

_BEAT_S = 1.0
_LINGER_S = 1.0
_HELLO_S = 10.0


class TaskLink:
    """Opened in the thread that uses it."""

    def __init__(self, endpoint: str, keys: ClientKeys, silence_s: float) -> None:
        """Connect to the driver. Raises SchedulerError when `endpoint` is not an address."""
        self._endpoint = endpoint
        self._silence_s = silence_s
        self._sockets = SocketContext(max_frame_bytes=FRAME_BYTES, link_timeout_s=silence_s)
        try:
            self._channel = open_watched_channel(self._sockets, endpoint, keys)
        except HeronError as error:
            self._sockets.close()
            msg = f"the address of the Spark driver is not usable: {error}"
            raise SchedulerError(msg) from error
        self._received_s = self._beat_s = monotonic_s()

    def register(self, ticket: str) -> DriverCommand:
        """Send the ticket; return the driver's answer, ``GO`` or ``LEAVE``.

        Raises:
            SchedulerError: when no answer comes within 10 s.
        """
        self.send(TaskHello(ticket, socket.gethostname()))
        deadline_s = monotonic_s() + _HELLO_S
        while monotonic_s() < deadline_s and not self.lost:
            for command in self.receive(0.2):
                if command in {DriverCommand.GO, DriverCommand.LEAVE}:
                    return command
        why = self.lost or f"no answer within {_HELLO_S:g} s"
        msg = (
            f"the Spark driver at {self._endpoint} cannot be reached from {socket.gethostname()} ({why}); open the "
            "port, or set scheduler.driver_host to an address that workers reach"
        )
        raise SchedulerError(msg)

    @property
    def lost(self) -> str:
        """Why the driver is lost; "" while it is there."""
        if self._channel.end is not None:
            return self._channel.end.value
        silent_s = monotonic_s() - self._received_s
        return f"it has sent nothing for {silent_s:.0f} s" if silent_s > self._silence_s else ""

    def send(self, message: TaskMessage) -> None:
        self._channel.send(msgspec.json.encode(message))

    def receive(self, wait_s: float) -> list[DriverCommand]:
        """Wait up to `wait_s` for commands of the driver and return them; send a heartbeat when it is due."""
        if monotonic_s() - self._beat_s >= _BEAT_S:
            self._beat_s = monotonic_s()
            self.send(TaskHeartbeat())
        self._channel.wait(wait_s)
        commands = []
        while (frame := self._channel.receive()) is not None:
            self._received_s = monotonic_s()
            commands.append(msgspec.json.decode(frame, type=DriverCommand))
        return commands

    def close(self) -> None:
        """Close the link; wait up to a second until the last messages are sent."""
        self._channel.close()
        self._sockets.close(_LINGER_S)

"""The task's end of the link to the driver: JSON messages over an encrypted socket, with heartbeats both ways.

Task to driver: ``hello`` (once), ``up``, ``refused``, ``beat``, ``ended``. Driver to task: ``go`` or ``leave`` (once),
``beat``, ``terminate``, ``kill``.
"""

from __future__ import annotations

import json
import os
import socket

from heron.clock import monotonic_s
from heron.errors import HeronError, SchedulerError
from heron.ipc.keys import ClientKeys
from heron.ipc.socket import SocketContext
from heron.ipc.watched_channel import open_watched_channel

__all__ = ["BEAT_S", "TaskLink"]

BEAT_S = 1.0
_LINGER_S = 1.0
_HELLO_S = 10.0


class TaskLink:
    """Opened in the thread that uses it; `lost` is why it came to nothing, "" while it serves."""

    def __init__(self, endpoint: str, keys: ClientKeys, silence_s: float) -> None:
        """Raises SchedulerError when nobody answers there."""
        self._endpoint = endpoint
        self._silence_s = silence_s
        self._sockets = SocketContext(link_timeout_s=silence_s)
        try:
            self._channel = open_watched_channel(self._sockets, endpoint, keys)
        except HeronError as error:
            self._sockets.close()
            msg = f"the Spark driver's address is not one: {error}"
            raise SchedulerError(msg) from error
        self._heard_s = self._beat_s = monotonic_s()

    def greet(self, ticket: str) -> str:
        """Shows the ticket; the driver's answer, ``go`` or ``leave``.

        Raises:
            SchedulerError: when there is none.
        """
        self.say("hello", ticket=ticket, host=socket.gethostname(), pid=os.getpid())
        deadline_s = monotonic_s() + _HELLO_S
        while monotonic_s() < deadline_s and not self.lost:
            for what in self.heard(0.2):
                if what in {"go", "leave"}:
                    return what
        why = self.lost or f"no answer within {_HELLO_S:g} s"
        msg = (
            f"the Spark driver at {self._endpoint} cannot be reached from {socket.gethostname()} ({why}); open that "
            "way, or set scheduler.driver_host to an address that workers reach"
        )
        raise SchedulerError(msg)

    @property
    def lost(self) -> str:
        """Why there is nobody at the other end; "" while there is."""
        if self._channel.end is not None:
            return self._channel.end.value
        silent_s = monotonic_s() - self._heard_s
        return f"it has said nothing for {silent_s:.0f} s" if silent_s > self._silence_s else ""

    def say(self, what: str, **facts: object) -> None:
        self._channel.send(json.dumps({"say": what, **facts}).encode())

    def heard(self, wait_s: float) -> list[str]:
        """What the driver has said, waiting `wait_s` for something; beats meanwhile."""
        if monotonic_s() - self._beat_s >= BEAT_S:
            self._beat_s = monotonic_s()
            self.say("beat")
        self._channel.wait(wait_s)
        found = []
        while (frame := self._channel.receive()) is not None:
            self._heard_s = monotonic_s()
            found.append(str(json.loads(frame)["do"]))
        return found

    def close(self) -> None:
        """What was said last is on its way when it returns."""
        self._channel.close()
        self._sockets.close(_LINGER_S)

"""The task's end of the link to the driver: typed messages over an encrypted socket, with heartbeats both ways."""

from __future__ import annotations

import socket

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.links import ClientKeys, SocketContext, open_watched_channel
from heron.errors import HeronError, SchedulerError
from heron_scheduler_spark.task_words import Beat, Hello, Said, Word

__all__ = ["TaskLink"]

_BEAT_S = 1.0
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

    def greet(self, ticket: str) -> Word:
        """Shows the ticket; the driver's answer, ``GO`` or ``LEAVE``.

        Raises:
            SchedulerError: when there is none.
        """
        self.say(Hello(ticket, socket.gethostname()))
        deadline_s = monotonic_s() + _HELLO_S
        while monotonic_s() < deadline_s and not self.lost:
            for word in self.heard(0.2):
                if word in {Word.GO, Word.LEAVE}:
                    return word
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

    def say(self, what: Said) -> None:
        self._channel.send(msgspec.json.encode(what))

    def heard(self, wait_s: float) -> list[Word]:
        """What the driver has said, waiting `wait_s` for something; beats meanwhile."""
        if monotonic_s() - self._beat_s >= _BEAT_S:
            self._beat_s = monotonic_s()
            self.say(Beat())
        self._channel.wait(wait_s)
        found = []
        while (frame := self._channel.receive()) is not None:
            self._heard_s = monotonic_s()
            found.append(msgspec.json.decode(frame, type=Word))
        return found

    def close(self) -> None:
        """What was said last is on its way when it returns."""
        self._channel.close()
        self._sockets.close(_LINGER_S)

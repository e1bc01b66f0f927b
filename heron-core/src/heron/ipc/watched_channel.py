"""A channel to a hub on the network that knows why its connection came to nothing."""

from __future__ import annotations

import enum
import struct

import zmq

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys
from heron.ipc.socket import Channel, SocketContext

__all__ = ["ConnectionEnd", "WatchedChannel", "open_watched_channel"]

_EVENT = struct.Struct("=HI")  # event and value: the first part of what a monitor says


class ConnectionEnd(enum.Enum):
    """Why there is no connection, or no longer."""

    NOBODY = "nobody listens there"
    UNKNOWN_KEY = "it does not know this key"
    FOREIGN = "what listens there has other keys"
    GONE = "it ended the connection"


_ENDS = {
    int(zmq.EVENT_CLOSED): ConnectionEnd.NOBODY,
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH): ConnectionEnd.UNKNOWN_KEY,
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL): ConnectionEnd.FOREIGN,
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL): ConnectionEnd.FOREIGN,
    int(zmq.EVENT_DISCONNECTED): ConnectionEnd.GONE,
}


def open_watched_channel(sockets: SocketContext, endpoint: str, keys: ClientKeys) -> WatchedChannel:
    """A channel to the hub at a network endpoint, watched from before its first attempt to connect.

    Raises:
        HeronError: when `endpoint` is not one.
    """
    channel = WatchedChannel(sockets.client(endpoint, keys))
    try:
        channel.raw.connect(endpoint)
    except zmq.ZMQError as error:
        channel.close()
        msg = f"cannot connect to {endpoint}: {error}"
        raise HeronError(msg) from error
    return channel


class WatchedChannel(Channel):
    """Frames to and from one hub, for who waits for an answer and for nothing else. It connects once."""

    __slots__ = ("_events", "end")

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        """For a socket that is not connected yet."""
        super().__init__(raw)
        self.end: ConnectionEnd | None = None
        events = 0
        for event in _ENDS:
            events |= event
        self._events: zmq.Socket[bytes] = raw.get_monitor_socket(events)

    def wait(self, timeout_s: float) -> bool:
        """Waits until there is a frame to receive; False when there was none in time, or the connection is at its
        `end`.
        """
        poller = zmq.Poller()
        poller.register(self.raw, zmq.POLLIN)
        if self.end is None:
            poller.register(self._events, zmq.POLLIN)
        ready = dict(poller.poll(max(0, int(timeout_s * 1000))))
        if self.raw in ready:
            return True
        if self._events in ready:
            self._take_end()
            return bool(self.raw.poll(0))  # its last words
        return False

    def close(self) -> None:
        if not self.raw.closed:
            self.raw.disable_monitor()
            self._events.close()
        super().close()

    def _take_end(self) -> None:
        event, _ = _EVENT.unpack(self._events.recv_multipart()[0])
        self.end = _ENDS.get(event, ConnectionEnd.GONE)

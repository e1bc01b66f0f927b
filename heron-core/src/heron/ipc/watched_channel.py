"""A channel to a hub on the network that reports why its connection failed or ended."""

from __future__ import annotations

import enum
import struct

import zmq

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys
from heron.ipc.socket import Channel, SocketContext

__all__ = ["ConnectionEnd", "WatchedChannel", "open_watched_channel"]

_EVENT = struct.Struct("=HI")  # event and value: the first part of a monitor's message


class ConnectionEnd(enum.Enum):
    """Why a connection failed or ended."""

    NOBODY = "no process listens there"
    UNKNOWN_KEY = "it does not know this key"
    FOREIGN = "the process that listens there has other keys"
    GONE = "it ended the connection"


_ENDS = {
    int(zmq.EVENT_CLOSED): ConnectionEnd.NOBODY,
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH): ConnectionEnd.UNKNOWN_KEY,
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL): ConnectionEnd.FOREIGN,
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL): ConnectionEnd.FOREIGN,
    int(zmq.EVENT_DISCONNECTED): ConnectionEnd.GONE,
}


def open_watched_channel(sockets: SocketContext, endpoint: str, keys: ClientKeys) -> WatchedChannel:
    """Opens a channel to the hub at a network endpoint; it is watched from its first attempt to connect.

    Raises:
        HeronError: when `endpoint` is invalid.
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
    """Frames to and from one hub, for a caller that sends a request and waits for the reply. It connects only once."""

    __slots__ = ("_events", "end")

    def __init__(self, raw: zmq.Socket[bytes]) -> None:
        """Takes a socket that is not connected yet."""
        super().__init__(raw)
        self.end: ConnectionEnd | None = None
        events = 0
        for event in _ENDS:
            events |= event
        self._events: zmq.Socket[bytes] = raw.get_monitor_socket(events)

    def wait(self, timeout_s: float) -> bool:
        """Waits for a frame; False when none has arrived in time, or the connection has ended (`end`)."""
        poller = zmq.Poller()
        poller.register(self.raw, zmq.POLLIN)
        if self.end is None:
            poller.register(self._events, zmq.POLLIN)
        ready = dict(poller.poll(max(0, int(timeout_s * 1000))))
        if self.raw in ready:
            return True
        if self._events in ready:
            self._take_end()
            return bool(self.raw.poll(0))  # a last frame may have arrived
        return False

    def close(self) -> None:
        if not self.raw.closed:
            self.raw.disable_monitor()
            self._events.close()
        super().close()

    def _take_end(self) -> None:
        event, _ = _EVENT.unpack(self._events.recv_multipart()[0])
        self.end = _ENDS.get(event, ConnectionEnd.GONE)

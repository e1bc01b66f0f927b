"""Sends the location of the topology manager to the processes of the container, now and at each change.

The message also has the version of the keys. It grows when a process must read its spec file again.

Only the executor connects to the state manager. The state manager calls the watch on a thread of its driver, which puts
the node into a queue and wakes the event loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron.ipc.violations import Violations
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron.state_nodes.tmanager_location import decode_tmanager_location

__all__ = ["LocationServer"]

_MESSAGES_A_ROUND = 256
_MOST_CLIENTS = 4096  # the processes of a container, each of which asks once

_OnNode = Callable[[Versioned | None], None]

_log = logging.getLogger(__name__)


class LocationServer:
    """The hub that the processes of the container ask."""

    def __init__(self, reactor: Reactor, sockets: SocketContext, endpoint: str, topology_id: str) -> None:
        self._topology_id = topology_id
        self._topology = ""
        self._location = pb.TManagerLocation()
        self._clients: set[bytes] = set()
        self._changes: deque[tuple[_OnNode, Versioned | None]] = deque()
        self._wakeup = reactor.machine.wakeup()
        self._wakeup.asleep = True
        self.violations = Violations(_log)
        self._hub: Hub = sockets.hub(endpoint)
        reactor.on_readable(self._hub, self._read)
        reactor.on_readable(self._wakeup.fd, self._take_changes)

    def watch(self, statemgr: StateManager, topology: str, on_keys: _OnNode) -> None:
        """Follows the location, and the keys for `on_keys`, until the state manager is closed.

        Raises:
            StateError: when the state manager cannot watch the nodes.
        """
        self._topology = topology
        statemgr.watch(NodeKind.TMANAGER_LOCATION, topology, partial(self._changed, self._locate))
        statemgr.watch(NodeKind.KEYS, topology, partial(self._changed, on_keys))

    def set_keys(self, version: int) -> None:
        """Tells every process the version of the keys that its spec file has now."""
        if version != self._location.keys:
            self._location.keys = version
            self._send_to_all()

    def close(self) -> None:
        """Releases the wakeup; call it after the state manager is closed."""
        self._wakeup.close()

    def _changed(self, call: _OnNode, node: Versioned | None) -> None:
        self._changes.append((call, node))
        self._wakeup.wake()

    def _take_changes(self) -> None:
        self._wakeup.drain()
        self._wakeup.asleep = True
        while self._changes:
            call, node = self._changes.popleft()
            call(node)

    def _locate(self, node: Versioned | None) -> None:
        found = pb.TManagerLocation(epoch=self._location.epoch, keys=self._location.keys)
        if node is not None:
            try:
                location = decode_tmanager_location(node.value, self._topology)
            except HeronError as error:
                _log.error("%s", error)
                return
            if location.topology_id == self._topology_id and node.version >= self._location.epoch:
                found.endpoint, found.epoch, found.server_key = location.endpoint, node.version, location.server_key
        if found == self._location:
            return
        self._location = found
        _log.info("topology manager: %s, epoch %d", found.endpoint or "none now", found.epoch)
        self._send_to_all()

    def _read(self) -> None:
        for _ in range(_MESSAGES_A_ROUND):
            message = self._hub.receive()
            if message is None:
                return
            client, frame = message
            try:
                body = body_of(parse_control(frame))
                if body != "location_request":
                    msg = f"{body} is not for an executor"
                    raise RemoteProtocolError(msg, Violation.KIND)
            except RemoteProtocolError as error:
                text = f"refused a message on the executor's socket: {error}"
                self.violations.note("container", error.violation, text, level=logging.WARNING)
                continue
            self._add(client)
            self._hub.send(client, self._frame())

    def _add(self, client: bytes) -> None:
        """Remembers a client; forgets those that have gone when there are many, because nothing else reports them."""
        self._clients.add(client)
        if len(self._clients) > _MOST_CLIENTS:
            self._send_to_all()

    def _send_to_all(self) -> None:
        frame = self._frame()
        self._clients = {each for each in self._clients if self._hub.send(each, frame)}

    def _frame(self) -> bytes:
        return control_frame(Envelope(tmanager_location=self._location))

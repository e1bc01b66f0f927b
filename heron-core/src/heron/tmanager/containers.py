"""The connections of stream managers and executors: the identity of each on the topology manager's socket."""

from __future__ import annotations

from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.socket import Hub

__all__ = ["Containers"]


class Containers:
    """Sends to stream managers and executors by container; every message carries the leader's epoch."""

    def __init__(self, hub: Hub, epoch: int) -> None:
        self._hub = hub
        self._epoch = epoch
        self._stmgrs: dict[int, bytes] = {}
        self._executors: dict[int, bytes] = {}
        self._container_of: dict[bytes, int] = {}

    def add_stmgr(self, container_id: int, identity: bytes) -> None:
        """From now on, this is the stream manager of that container."""
        self._stmgrs[container_id] = identity

    def add_executor(self, container_id: int, identity: bytes) -> None:
        """From now on, this is the executor of that container."""
        self._container_of.pop(self._executors.get(container_id, b""), None)
        self._executors[container_id] = identity
        self._container_of[identity] = container_id

    def executors(self) -> tuple[int, ...]:
        """The containers whose executor has registered."""
        return tuple(self._executors)

    def executor_of(self, identity: bytes) -> int | None:
        """The container of an executor, None for another process."""
        return self._container_of.get(identity)

    def stmgr_of(self, identity: bytes) -> int | None:
        """The container of a stream manager, None for another process."""
        return next((each for each, known in self._stmgrs.items() if known == identity), None)

    def answer(self, identity: bytes, envelope: Envelope) -> bool:
        """Sends to the process with that identity; returns False when it is gone."""
        envelope.epoch = self._epoch
        return self._hub.send(identity, control_frame(envelope))

    def send_to_stmgr(self, container_id: int, envelope: Envelope) -> None:
        """Sends to a stream manager if it is connected; it registers again when it returns."""
        identity = self._stmgrs.get(container_id)
        if identity is not None and not self.answer(identity, envelope):
            del self._stmgrs[container_id]

    def send_to_stmgrs(self, envelope: Envelope) -> None:
        """Sends to every stream manager."""
        for container_id in tuple(self._stmgrs):
            self.send_to_stmgr(container_id, envelope)

    def send_to_executor(self, container_id: int, envelope: Envelope) -> None:
        """Sends to an executor if it is connected."""
        identity = self._executors.get(container_id)
        if identity is not None and not self.answer(identity, envelope):
            del self._executors[container_id]
            self._container_of.pop(identity, None)

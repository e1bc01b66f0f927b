"""The connections of stream managers and executors: the identity of each on the topology manager's socket."""

from __future__ import annotations

from heron.ipc.envelope import Envelope, compressed, control_frame
from heron.ipc.socket import Hub

__all__ = ["Containers"]


class Containers:
    """Sends to stream managers and executors by container; every message carries the leader's epoch."""

    def __init__(self, hub: Hub, epoch: int) -> None:
        self._hub = hub
        self._epoch = epoch
        self._stmgrs: dict[int, bytes] = {}
        self._executors: dict[int, bytes] = {}
        self._stmgr_of: dict[bytes, int] = {}
        self._executor_of: dict[bytes, int] = {}

    def add_stmgr(self, container_id: int, identity: bytes) -> None:
        """From now on, this is the stream manager of that container."""
        self._stmgr_of.pop(self._stmgrs.get(container_id, b""), None)
        self._stmgrs[container_id] = identity
        self._stmgr_of[identity] = container_id

    def add_executor(self, container_id: int, identity: bytes) -> None:
        """From now on, this is the executor of that container."""
        self._executor_of.pop(self._executors.get(container_id, b""), None)
        self._executors[container_id] = identity
        self._executor_of[identity] = container_id

    def executors(self) -> tuple[int, ...]:
        """The containers whose executor has registered."""
        return tuple(self._executors)

    def executor_of(self, identity: bytes) -> int | None:
        """The container of an executor, None for another process."""
        return self._executor_of.get(identity)

    def stmgr_of(self, identity: bytes) -> int | None:
        """The container of a stream manager, None for another process."""
        return self._stmgr_of.get(identity)

    def answer(self, identity: bytes, envelope: Envelope) -> bool:
        """Sends to the process with that identity; returns False when it is gone."""
        envelope.epoch = self._epoch
        return self._hub.send(identity, control_frame(envelope))

    def frame_for_stmgrs(self, envelope: Envelope) -> bytes:
        """The frame of a message for many stream managers: 1,000 plans of 10,000 tasks would take more than 1 GB."""
        envelope.epoch = self._epoch
        return control_frame(compressed(envelope))

    def send_to_stmgr(self, container_id: int, frame: bytes) -> None:
        """Sends to a stream manager if it is connected; it registers again when it returns."""
        identity = self._stmgrs.get(container_id)
        if identity is not None:
            self._send_shared((identity,), frame)

    def ask_stmgr(self, container_id: int, question: Envelope) -> bool:
        """Sends a question to a stream manager; returns False when it is not connected."""
        identity = self._stmgrs.get(container_id)
        return identity is not None and self.answer(identity, question)

    def send_to_stmgrs(self, frame: bytes) -> None:
        """Sends to every stream manager."""
        self._send_shared(tuple(self._stmgr_of), frame)

    def send_to_executor(self, container_id: int, envelope: Envelope) -> None:
        """Sends to an executor if it is connected."""
        identity = self._executors.get(container_id)
        if identity is not None and not self.answer(identity, envelope):
            del self._executors[container_id]
            self._executor_of.pop(identity, None)

    def _send_shared(self, identities: tuple[bytes, ...], frame: bytes) -> None:
        for gone in self._hub.send_to_each(identities, frame):
            container_id = self._stmgr_of.pop(gone, -1)
            if self._stmgrs.get(container_id) == gone:
                del self._stmgrs[container_id]

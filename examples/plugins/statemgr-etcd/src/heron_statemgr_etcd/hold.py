"""A held node: its key has a lease, and a thread of this process keeps the lease alive.

If the process is killed, the thread ends with it, and etcd removes the node after `lease_s` seconds. `release` revokes
the lease. That removes this node, and never a node that another process has put there since.
"""

from __future__ import annotations

import logging
import threading

from heron.errors import StateConflictError, StateError
from heron.spi.statemgr import MUST_NOT_EXIST

from heron_statemgr_etcd.node import Node

__all__ = ["EtcdHold"]

_log = logging.getLogger(__name__)


class EtcdHold:
    """Implements `heron.spi.statemgr.Hold`; thread-safe."""

    def __init__(self, node: Node, value: bytes, lease_s: int) -> None:
        self._node = node
        self._ended = threading.Event()
        self._lease = node.etcd.call("lease/grant", {"TTL": lease_s}).lease
        try:
            self._epoch = node.write(value, MUST_NOT_EXIST, self._lease)
        except StateConflictError:
            self._revoke()
            raise
        self._thread = threading.Thread(target=self._keep, args=(lease_s / 3,), name="etcd-lease", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The version at which the hold was taken."""
        return self._epoch

    def lost(self) -> bool:
        """Reads the node; an etcd that does not answer leaves the question open."""
        if not self._ended.is_set():
            try:
                pair = self._node.pair()
            except StateError as error:
                _log.warning("cannot find out whether the hold of %s is lost: %s", self._node.name, error)
            else:
                if pair is None or pair.lease != self._lease:
                    self._ended.set()
        return self._ended.is_set()

    def release(self) -> None:
        """Ends the thread and revokes the lease."""
        self._ended.set()
        if self._lease:
            self._thread.join()
            self._revoke()

    def _keep(self, period_s: float) -> None:
        while not self._ended.wait(period_s):
            try:
                self._node.etcd.call("lease/keepalive", {"ID": self._lease})
            except StateError as error:
                _log.warning("cannot keep %s alive, trying again: %s", self._node.name, error)

    def _revoke(self) -> None:
        lease, self._lease = self._lease, 0
        try:
            self._node.etcd.call("lease/revoke", {"ID": lease})
        except StateError as error:
            _log.warning("%s stays until its lease is over: %s", self._node.name, error)

"""The driver ``etcd``: topologies as keys of an etcd cluster."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from heron.errors import StateError
from heron.spi.options import decode_options
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch
from msgspec import Meta

from heron_statemgr_etcd.gateway import Gateway
from heron_statemgr_etcd.hold import EtcdHold
from heron_statemgr_etcd.node import Node
from heron_statemgr_etcd.watch import EtcdWatch

__all__ = ["EtcdOptions", "EtcdStateManager"]


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """The driver's section of a profile: the URL of etcd, the prefix of all keys, the lease of a hold in seconds."""

    url: str = "http://127.0.0.1:2379"
    prefix: str = "/heron"
    lease_s: Annotated[int, Meta(ge=2)] = 5


class EtcdStateManager(StateManager):
    """Keeps nodes in etcd, for the processes of all machines that reach it."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server"})
    options_type: ClassVar[type] = EtcdOptions
    max_value_bytes: ClassVar[int | None] = 1024 * 1024  # etcd's limit for a request is 1.5 MiB

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Makes the driver; the first method call connects."""
        return cls(decode_options(options, EtcdOptions, "statemgr"))

    def __init__(self, options: EtcdOptions) -> None:
        self._options = options
        self._etcd = Gateway(options.url)
        self._open: builtins.list[EtcdHold | EtcdWatch] = []

    def check(self, timeout_s: float) -> str:
        """Asks etcd for its version."""
        return f"etcd {self._etcd.call('maintenance/status', {}, timeout_s).version} at {self._options.url}"

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """As `StateManager.get`."""
        return self._node(kind, topology).read()[0]

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """As `StateManager.set`."""
        return self._node(kind, topology).write(_checked(value), expected)

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        """As `StateManager.delete`."""
        self._node(kind, topology).remove(expected)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        """As `StateManager.list`."""
        folder = f"{self._options.prefix}/nodes/{kind.value}/".encode()
        end = folder[:-1] + bytes([folder[-1] + 1])  # the first key after all keys with this prefix
        found = self._etcd.call("kv/range", {"key": folder, "range_end": end, "keys_only": True})
        return tuple(pair.key.removeprefix(folder).decode() for pair in found.kvs)

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        """As `StateManager.watch`."""
        watch = EtcdWatch(self._node(kind, topology), on_change)
        self._open.append(watch)
        return watch

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        """As `StateManager.hold`."""
        hold = EtcdHold(self._node(kind, topology), _checked(value), self._options.lease_s)
        self._open.append(hold)
        return hold

    def close(self) -> None:
        """As `StateManager.close`."""
        while self._open:
            each = self._open.pop()
            each.release() if isinstance(each, EtcdHold) else each.close()
        self._etcd.close()

    def _node(self, kind: NodeKind, topology: str) -> Node:
        return Node(self._etcd, self._options.prefix, kind, topology)


def _checked(value: bytes) -> bytes:
    limit = EtcdStateManager.max_value_bytes
    if limit is not None and len(value) > limit:
        message = f"a value of {len(value)} bytes is above the limit of etcd, {limit} bytes; split it"
        raise StateError(message)
    return value

"""The keys with which a process connects. They change while it runs: its executor writes them into its spec file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from heron.ipc.keys import ClientKeys, keys_of_server
from heron.kernel.role_spec import MetricsmgrSpec, StmgrSpec

__all__ = ["ProcessKeys"]

S = TypeVar("S", MetricsmgrSpec, StmgrSpec)


class ProcessKeys(Generic[S]):
    """The sets of keys of a process, oldest first; `heron.ipc.locator.KeySource`."""

    def __init__(self, spec: S, read: Callable[[], S], on_change: Callable[[S], object] = lambda _: None) -> None:
        """`read` returns the spec that the file has now. `on_change` gets it when it has other keys."""
        self._spec: S = spec
        self._read: Callable[[], S] = read
        self._on_change: Callable[[S], object] = on_change
        self._version = 0

    def of_server(self, server_public: str) -> ClientKeys | None:
        """The keys for the server with that public key; None when this process does not have them."""
        return keys_of_server(server_public, self._spec.keys)

    def take(self, version: int) -> None:
        """Reads the spec file again if the executor has a newer version of the node KEYS.

        Raises:
            HeronError: when the file cannot be read, or `on_change` raises; the next call tries again.
        """
        if version <= self._version:
            return
        spec = self._read()
        if spec.keys != self._spec.keys:
            self._on_change(spec)
            self._spec = spec
        self._version = version

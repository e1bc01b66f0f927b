"""One node: a key for its value, and a counter that outlives it.

etcd counts how often a key was put, and starts again when the key was deleted. The contract demands versions that grow
across removal. So each write also puts a second key, the counter, which nobody deletes: its count is the version.
"""

from __future__ import annotations

import re

from heron.errors import StateConflictError, StateError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, Versioned

from heron_statemgr_etcd.gateway import Gateway, Pair, delete, put, read, replace

__all__ = ["Node"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


class Node:
    """The node of one kind and topology below a prefix."""

    def __init__(self, etcd: Gateway, prefix: str, kind: NodeKind, topology: str) -> None:
        if not _NAME.fullmatch(topology):
            message = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
            raise StateError(message)
        self.name = f"{kind.value}/{topology}"
        self.etcd = etcd
        self.key = f"{prefix}/nodes/{self.name}".encode()
        self._counter = f"{prefix}/versions/{self.name}".encode()

    def read(self) -> tuple[Versioned | None, int]:
        """Returns the node, and the revision of etcd at which it was read.

        One transaction reads value and counter, so the two fit each other.
        """
        answer = self.etcd.transaction([], [read(self.key), read(self._counter)])
        pair, counter = answer.read(0), answer.read(1)
        present = Versioned(pair.value, counter.version) if pair and counter else None
        return present, answer.header.revision

    def pair(self) -> Pair | None:
        """Returns the key as etcd has it."""
        return self.etcd.transaction([], [read(self.key)]).read(0)

    def write(self, value: bytes, expected: int | None, lease: int = 0) -> int:
        """Puts value and counter in one transaction, and returns the counter. An existing key keeps its lease."""
        replaces = expected != MUST_NOT_EXIST
        while True:
            step = replace(self.key, value) if replaces else put(self.key, value, lease)
            compare = self._expectation(expected) or [self._exists() if replaces else self._is_missing()]
            answer = self.etcd.transaction(compare, [step, put(self._counter, b""), read(self._counter)])
            counter = answer.read(2) if answer.succeeded else None
            if counter is not None:
                return counter.version
            if expected is not None:
                raise StateConflictError(self._changed(expected))
            replaces = not replaces  # the key came or went

    def remove(self, expected: int | None) -> None:
        """Removes the key and leaves the counter."""
        answer = self.etcd.transaction(self._expectation(expected), [delete(self.key)])
        if not answer.succeeded:
            raise StateConflictError(self._changed(expected))

    def _expectation(self, expected: int | None) -> list[object]:
        if expected is None:
            return []
        if expected == MUST_NOT_EXIST:
            return [self._is_missing()]
        return [
            self._exists(),
            {"key": self._counter, "target": "VERSION", "result": "EQUAL", "version": expected},
        ]

    def _is_missing(self) -> object:
        return {"key": self.key, "target": "CREATE", "result": "EQUAL", "create_revision": 0}

    def _exists(self) -> object:
        return {"key": self.key, "target": "CREATE", "result": "GREATER", "create_revision": 0}

    def _changed(self, expected: int | None) -> str:
        wanted = "no node" if expected == MUST_NOT_EXIST else f"version {expected}"
        return f"{self.name} is not as expected ({wanted}): another process holds or changed it; read it again"

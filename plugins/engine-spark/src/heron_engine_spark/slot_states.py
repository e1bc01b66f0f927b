"""The states of an operator's keys in one slot, saved after each micro-batch: as a whole, or what changed since.

A file belongs to a batch when the record of the batch names it; files of attempts that failed are never read.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.parcels import SlotVersion, packed, unpacked

__all__ = ["SlotStates"]

_FILES_AT_MOST = 10  # a worker that has not seen the slot before reads all of them


class SlotStates:
    """States by key (`heron_streamlet.runtime.keyed_stage.States`)."""

    def __init__(self, folder: CheckpointFolder | None, version: SlotVersion) -> None:
        """Read the states of a version. Without a folder nothing is saved."""
        self._folder = folder
        self._version = version
        self._states: dict[Any, Any] = {}
        self._touched: dict[Any, None] = {}
        for name in version.files if folder is not None else ():
            assert folder is not None  # noqa: S101  # as above
            kept, removed = unpacked(folder.read(name))
            self._states.update(kept)
            for key in removed:
                self._states.pop(key, None)

    def get(self, key: Any) -> Any:  # noqa: ANN401
        """The state of a key, or None; the operator may change it in place."""
        self._touched[key] = None
        return self._states.get(key)

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401
        """Keep a state."""
        self._touched[key] = None
        self._states[key] = value

    def remove(self, key: Any) -> None:  # noqa: ANN401
        """Forget a key."""
        self._touched[key] = None
        self._states.pop(key, None)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All keys with their states."""
        return self._states.items()

    def save(self, operator: str, slot: int, batch: int, watermark_us: int) -> SlotVersion:
        """Write what changed since the last version, or everything when the changes have become many."""
        version, touched = self._version, self._touched
        files, changes = version.files, version.changes + len(touched)
        if touched and self._folder is not None:
            whole = not files or len(files) >= _FILES_AT_MOST or changes > len(self._states)
            kept = self._states if whole else {key: self._states[key] for key in touched if key in self._states}
            removed = [] if whole else [key for key in touched if key not in self._states]
            name = f"state/{slot:04}-{operator}-{batch:08}-{secrets.token_hex(4)}"
            self._folder.write(name, packed((kept, removed)))
            files, changes = ((name,), 0) if whole else ((*files, name), changes)
        self._touched = {}
        self._version = SlotVersion(files, watermark_us, len(self._states), changes)
        return self._version

"""The driver. It checks names, delegates to the node, and owns the holds and the watcher."""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.driver_kit.private_files import check_private, make_private_dir
from heron.errors import StateError
from heron.spi.options import decode_options
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch
from heron_statemgr_localfs.hold import FileHold
from heron_statemgr_localfs.node import Node
from heron_statemgr_localfs.os_errors import root_gone, translate_os_errors
from heron_statemgr_localfs.watcher import Watcher

__all__ = ["LocalFsOptions", "LocalFsStateManager"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


class LocalFsOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile. `root` is the folder of the nodes; ``~`` is the user's home."""

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/state"


class LocalFsStateManager(StateManager):
    """Keeps nodes as files below one folder, for the processes of one user on one machine."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files"})
    options_type: ClassVar[type] = LocalFsOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, LocalFsOptions, "statemgr"))

    def __init__(self, options: LocalFsOptions) -> None:
        self._root = Path(os.path.abspath(os.path.expanduser(options.root)))
        self._guard = threading.Lock()
        self._holds: list[FileHold] = []
        self._watcher: Watcher | None = None
        self._closed = False
        with translate_os_errors("make the state folder", self._root):
            _open_root(self._root)

    def check(self, timeout_s: float) -> str:
        with translate_os_errors("use the state folder", self._root):
            os.listdir(self._root)
            if not os.access(self._root, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "not writable")
        return f"folder {self._root}"

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        record = self._node(kind, topology).read()
        return None if record is None else Versioned(record.value, record.version)

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        return self._node(kind, topology).write(value, expected)

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        self._node(kind, topology).remove(expected)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        folder = self._root / kind.value
        with translate_os_errors("list", folder):
            try:
                names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
            except FileNotFoundError:
                if self._root.is_dir():
                    return ()
                raise root_gone(self._root) from None
        return tuple(name for name in names if self._node(kind, name).exists())

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        node = self._node(kind, topology)
        with self._guard:
            if self._watcher is None:
                self._watcher = Watcher()
            watcher = self._watcher
        return watcher.add(node, on_change)

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        hold = FileHold(self._node(kind, topology), value, secrets.token_hex(8), self._forget)
        with self._guard:
            self._holds.append(hold)
        return hold

    def close(self) -> None:
        with self._guard:
            self._closed = True
            holds: builtins.list[FileHold] = [*self._holds]
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()
        for hold in holds:
            hold.release()

    def _forget(self, hold: FileHold) -> None:
        with self._guard:
            if hold in self._holds:
                self._holds.remove(hold)

    def _node(self, kind: NodeKind, topology: str) -> Node:
        if self._closed:
            message = f"the state manager of {self._root} is closed; open another one"
            raise StateError(message)
        if not _NAME.fullmatch(topology):
            message = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
            raise StateError(message)
        return Node(self._root, kind.value, topology)


def _open_root(root: Path) -> None:
    """Create the folder of the nodes the first time, with a mark beside it (``.NAME.made``).

    The mark keeps a process from creating an empty folder while the real one is moved away or not mounted. The empty
    folder would hide all topologies, and would be in the way when the real one returns.

    Raises:
        StateUnavailableError: when the folder existed before and is gone.
        ConfigError: when other users can access it; it has the keys of topologies.
        OSError: when it cannot be created.
    """
    mark = root.with_name(f".{root.name}.made")
    # The mark is tested first: another process may be creating the folder, and then the mark.
    if mark.exists() and not root.exists():
        raise root_gone(root, f"; if it was removed for good, remove {mark} as well")
    make_private_dir(root)
    check_private(root, "state folder")
    if not mark.exists():
        with contextlib.suppress(OSError):  # the parent may be read-only; then there is no mark
            mark.touch(mode=0o600)

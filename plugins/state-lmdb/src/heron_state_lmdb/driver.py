"""Makes LMDB databases that last as long as their process.

A database is in a new folder, which is removed as soon as the files are open. So the files have no names: nobody else
opens them, and their space is free when the process ends, also by SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

import lmdb
import msgspec

from heron.driver_kit.private_files import check_usable, make_private_dir
from heron.errors import KeyedStateError
from heron.spi.options import decode_options
from heron.spi.state import StateBackend
from heron_driver_kit.os_errors import translated_os_errors
from heron_state_lmdb.store import LmdbTaskStore

__all__ = ["LmdbOptions", "LmdbStateBackend"]

_LEAST_BYTES: Final = 1024 * 1024
_ANOTHER: Final = "choose another state.folder"
_PREFIX: Final = "heron-state-"


class LmdbOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile.

    `folder` is where the files are; "" is the folder of the run, and ``~`` the user's home. `max_bytes` limits the file
    of each task, in bytes; it is address space, and the file grows as needed.
    """

    folder: str = ""
    max_bytes: Annotated[int, msgspec.Meta(ge=_LEAST_BYTES, le=1 << 46)] = 1 << 36


class LmdbStateBackend(StateBackend):
    """One database for each task, without a name."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files"})
    options_type: ClassVar[type] = LmdbOptions

    def __init__(self, folder: Path | None, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Read the options. The folder is not created yet."""
        chosen = decode_options(options, LmdbOptions, "state")
        folder = Path(os.path.abspath(Path(chosen.folder).expanduser())) if chosen.folder else None
        return cls(folder, chosen.max_bytes)

    def check(self, timeout_s: float) -> str:
        """Check that the folder is writable or can be created."""
        del timeout_s
        if self._folder is None:
            return ""
        with translated_os_errors(KeyedStateError, f"folder {self._folder}: cannot be used", _ANOTHER):
            check_usable(self._folder)
        return f"folder {self._folder}"

    def create(self, folder: Path) -> LmdbTaskStore:
        """Create the database below the folder of the options, or below `folder`."""
        parent = self._folder or folder
        what = f"folder {parent}: a database of a task cannot be created"
        with translated_os_errors(KeyedStateError, what, _ANOTHER):
            make_private_dir(parent)
            made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        try:
            environment = lmdb.open(
                str(made),
                map_size=self._max_bytes,
                mode=0o600,
                sync=False,  # the truth is the checkpoint
                metasync=False,
                readahead=False,
                max_readers=8,
            )
        except lmdb.Error as error:
            msg = f"{what}: {error}; free some space there, lower state.max_bytes, or {_ANOTHER}"
            raise KeyedStateError(msg) from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return LmdbTaskStore(environment, parent, self._max_bytes)

"""Opens the checkpoint store of a process."""

from __future__ import annotations

from heron.checkpoints.archive import CheckpointArchive
from heron.driver_kit.loading import open_driver
from heron.spi.checkpoint import CheckpointStore
from heron.spi.driver import DriverRef

__all__ = ["open_archive"]


def open_archive(ref: DriverRef | None, topology: str) -> CheckpointArchive | None:
    """The archive of a topology in the store that the command has chosen; None for a topology without checkpoints.

    Raises:
        PluginError: when the driver does not load.
        ConfigError: when the driver refuses its options.
    """
    return CheckpointArchive(open_driver(ref, CheckpointStore), topology) if ref is not None else None

"""Opens the checkpoint store of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef

if TYPE_CHECKING:  # imported where there is a store, so that other topologies start sooner
    from heron.checkpoints.archive import CheckpointArchive

__all__ = ["open_archive"]


def open_archive(ref: DriverRef | None, topology: str) -> CheckpointArchive | None:
    """The archive of a topology in the store that the command has chosen; None for a topology without checkpoints.

    Raises:
        PluginError: when the driver does not load.
        ConfigError: when the driver refuses its options.
    """
    if ref is None:
        return None
    from heron.checkpoints.archive import CheckpointArchive  # noqa: PLC0415  # see above
    from heron.spi.checkpoint import CheckpointStore  # noqa: PLC0415

    return CheckpointArchive(open_driver(ref, CheckpointStore), topology)

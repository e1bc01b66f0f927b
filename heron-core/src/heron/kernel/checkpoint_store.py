"""Opens the checkpoint store of a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef

if TYPE_CHECKING:  # imported where there is a store, so that other topologies start sooner
    from heron.checkpoints.archive import CheckpointArchive

__all__ = ["open_archive"]


def open_archive(
    ref: DriverRef | None, topology: str, limit_s: float = 0.0, stopped: Callable[[], bool] = lambda: False
) -> CheckpointArchive | None:
    """The archive of a topology in the store that the command has chosen; None for a topology without checkpoints.

    Loads from a store that is away are repeated for `limit_s` seconds, until the process is to be `stopped`.

    Raises:
        PluginError: when the driver does not load.
        ConfigError: when the driver refuses its options.
    """
    if ref is None:
        return None
    from heron.checkpoints.archive import CheckpointArchive  # noqa: PLC0415  # see above
    from heron.checkpoints.load_retries import LoadRetries  # noqa: PLC0415
    from heron.spi.checkpoint import CheckpointStore  # noqa: PLC0415

    retries = LoadRetries(limit_s, stopped) if limit_s else None
    return CheckpointArchive(open_driver(ref, CheckpointStore), topology, retries)

"""The launch file of a place: what a launcher needs to run its container. It has secrets, and the cluster hides it."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from heron.errors import SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, PlannedRun
from heron.spi.typed_values import convert_value, decode_json
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["LaunchFile", "decode_launch_file", "encode_launch_file", "read_launch_file", "write_launch_file"]

_MOST_BYTES = 1 << 24  # a spec has some kilobytes


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """`spec` is the spec of the container as plain data. An empty `executor` is the executor of the interpreter.

    With `planned`, the launcher of container 0 begins the run. `claim` is the number of an attempt, for
    `heron_scheduler_kit.claim`.
    """

    spec: dict[str, object]
    executor: tuple[str, ...] = ()
    backoff_s: float = 0.1
    backoff_max_s: float = 10.0
    restart_limit: int = 1000
    stable_s: float = 30.0
    grace_s: float = 6.0
    planned: PlannedRun | None = None
    claim: int = 0
    version: int = field(default=1)

    @property
    def topology(self) -> str:
        return str(self.spec["topology"])

    @property
    def topology_id(self) -> str:
        return str(self.spec["topology_id"])

    @property
    def uploader(self) -> DriverRef:
        return convert_value(self.spec["uploader"], DriverRef)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of the state manager, for redaction."""
        return convert_value(self.spec["statemgr"], DriverRef).secrets

    @property
    def container_id(self) -> int:
        return int(str(self.spec["container_id"]))


def encode_launch_file(spec: ContainerSpec, options: ManagedOptions, planned: PlannedRun | None = None) -> bytes:
    """Return the launch file of a container, compressed: some clusters limit the size of all secrets of a job."""
    made = LaunchFile(
        msgspec.to_builtins(spec),
        options.executor,
        options.restart_backoff_s,
        options.restart_backoff_max_s,
        options.restart_limit,
        options.stable_s,
        options.stop_grace_s,
        None if spec.container_id else planned,
    )
    return zlib.compress(msgspec.json.encode(made), 9)


def decode_launch_file(data: bytes) -> LaunchFile:
    """Return the launch file of `encode_launch_file`. Raises zlib.error or MsgspecError when it is something else."""
    return decode_json(zlib.decompressobj().decompress(data, _MOST_BYTES), LaunchFile)


def write_launch_file(launch: bytes) -> int:
    """Return a file in memory with mode 0600 that `exec` keeps. It goes with the process.

    Clusters show the files in the folder of a container to others. The launcher passes no open files on.
    """
    file = os.memfd_create("launch", 0)
    os.fchmod(file, 0o600)
    os.write(file, launch)
    return file


def read_launch_file(path: Path) -> LaunchFile | None:
    """Return the launch file at a path; None when there is none, because the place has no container.

    Raises:
        SchedulerError: when it cannot be read; the message does not show what it holds.
    """
    try:
        return decode_launch_file(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, zlib.error, msgspec.MsgspecError) as error:
        remedy = "install the same version of heron-scheduler-kit here and where the topology is submitted"
        msg = f"launch file {path}: cannot be read: {error}; {remedy}"
        raise SchedulerError(msg) from error

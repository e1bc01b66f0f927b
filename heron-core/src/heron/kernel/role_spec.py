"""The spec of a process: a JSON file of mode 0600 that its executor writes.

The path of the file is the only argument of the process, so command lines and environments contain no secrets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from heron.driver_kit.private_files import check_private
from heron.errors import StateError
from heron.ipc.keys import ClientKeys, ServerKeys
from heron.spi.driver import DriverRef

__all__ = [
    "InstanceSpec",
    "MetricsmgrSpec",
    "ServiceProcessSpec",
    "StmgrSpec",
    "TManagerSpec",
    "incarnation",
    "read_spec",
    "write_spec",
]

_RESTARTS = 65536  # per attempt of a container; with a restart every 0.1 s this takes two hours

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TManagerSpec:
    """For a topology manager. In each spec, `settings` are the engine settings by key.

    `checkpoint` is the store of the checkpoints, for a topology that takes any; also in an `InstanceSpec`.
    """

    topology: str
    topology_id: str
    container_id: int
    incarnation: int
    run_dir: str
    log_dir: str
    statemgr: DriverRef
    keys: ServerKeys
    settings: dict[str, object] = field(default_factory=dict)
    hooks: tuple[str, ...] = ()
    checkpoint: DriverRef | None = None


@dataclass(frozen=True, slots=True)
class StmgrSpec:
    """For a stream manager. `task_ids` are the tasks of its container; peers connect with `peer_keys`.

    `keys` and `peer_keys` have an element for each set of keys, oldest first, as `keys` of a metrics manager.
    """

    topology: str
    topology_id: str
    container_id: int
    incarnation: int
    run_dir: str
    log_dir: str
    task_ids: tuple[int, ...]
    keys: tuple[ClientKeys, ...]
    peer_keys: tuple[ServerKeys, ...]
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricsmgrSpec:
    """For a metrics manager."""

    topology: str
    container_id: int
    incarnation: int
    run_dir: str
    log_dir: str
    keys: tuple[ClientKeys, ...]
    sinks: tuple[DriverRef, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """For one task. `package_dir` has the unpacked package; `serializers` are all serializers except pickle.

    `state_backends` are all state backends that components name, except the memory.
    """

    topology: str
    topology_id: str
    container_id: int
    task_id: int
    component: str
    component_index: int
    incarnation: int
    run_dir: str
    log_dir: str
    package_dir: str
    settings: dict[str, object] = field(default_factory=dict)
    serializers: tuple[DriverRef, ...] = ()
    checkpoint: DriverRef | None = None
    state_backends: tuple[DriverRef, ...] = ()

    @property
    def driver_secrets(self) -> tuple[str, ...]:
        """The texts of its drivers that no message and no log may contain."""
        refs = (self.checkpoint, *self.state_backends)
        return tuple(text for ref in refs if ref is not None for text in ref.secrets)


@dataclass(frozen=True, slots=True)
class ServiceProcessSpec:
    """For a process of another distribution in container 0. `keys` are those to connect with.

    `control` is whether they may change the topology. `drivers` and `options` are those of its `ServiceSpec`.
    """

    topology: str
    topology_id: str
    container_id: int
    incarnation: int
    run_dir: str
    log_dir: str
    keys: ClientKeys
    control: bool = False
    drivers: tuple[DriverRef, ...] = ()
    options: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)

    def driver(self, family: str) -> DriverRef | None:
        """The driver of a family of which the process has at most one; None without one."""
        return next((each for each in self.drivers if each.family == family), None)


def incarnation(attempt: int, restarts: int) -> int:
    """The incarnation of a process. It grows with each restart of the container or of the process."""
    return attempt * _RESTARTS + min(restarts, _RESTARTS - 1)


def write_spec(path: Path, spec: object) -> None:
    """Writes a spec atomically with mode 0600."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(spec))
    unfinished.replace(path)


def read_spec(path: Path, kind: type[T]) -> T:
    """The spec in a file. It contains keys and passwords, so its mode is checked.

    Raises:
        ConfigError: when other users can access the file.
        StateError: when the file cannot be read, or is not a spec of this kind.
    """
    try:
        check_private(path, "spec file")
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        msg = f"spec file {path} cannot be read: {error.strerror}; its container may be gone"
        raise StateError(msg) from error
    except msgspec.MsgspecError as error:
        msg = f"spec file {path} is not a {kind.__name__}: {error}"
        raise StateError(msg) from error

"""Opens the state backend that the configuration of a component names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heron.api.api_constants import TOPOLOGY_STATE_BACKEND
from heron.api.config import setting
from heron.driver_kit.loading import open_driver
from heron.errors import PluginError, known
from heron.kernel.role_spec import InstanceSpec
from heron.spi.state import StateBackend, TaskStore

__all__ = ["task_store"]

_MEMORY = "memory"


def task_store(spec: InstanceSpec, config: Mapping[str, object]) -> TaskStore | None:
    """An empty store for the keyed state of a task; None if its component keeps state in memory.

    Raises:
        PluginError: when the command did not submit the backend, because the configuration was another one.
        ConfigError: when the backend refuses its options.
        KeyedStateError: when the backend cannot use its place.
    """
    name = str(setting(config, TOPOLOGY_STATE_BACKEND))
    if name == _MEMORY:
        return None
    ref = next((each for each in spec.state_backends if each.name == name), None)
    if ref is None:
        submitted = known([_MEMORY, *(each.name for each in spec.state_backends)])
        msg = f"{TOPOLOGY_STATE_BACKEND}: state backend {name!r} was not submitted; submitted: {submitted}"
        raise PluginError(msg)
    return open_driver(ref, StateBackend).create(Path(spec.run_dir))

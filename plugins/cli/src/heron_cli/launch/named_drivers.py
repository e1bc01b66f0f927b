"""The drivers that the components of a topology name: serializers and state backends."""

from __future__ import annotations

from typing import cast

from heron.api.api_constants import TOPOLOGY_COLUMNS, TOPOLOGY_SERIALIZER, TOPOLOGY_STATE_BACKEND
from heron.api.config import merged_config, setting
from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, PluginError
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer
from heron_cli.profiles import Profile, Resolver

__all__ = ["named_serializers", "named_state_backends"]

_CORE_SERIALIZERS = ("pickle", "plain")  # every instance has them
_COLUMN_SERIALIZER = "arrow"
_MEMORY = "memory"


def named_serializers(topology: TopologyDefinition, resolve: Resolver) -> tuple[DriverRef, ...]:
    """Return the serializers that components name, by name, without the core's own.

    Raises:
        PluginError: when one is not installed or does not work; names the component.
        ConfigError: when two serializers have the same number, so that readers could not distinguish them.
    """
    users = {name: (TOPOLOGY_SERIALIZER, user) for name, user in _users(topology, TOPOLOGY_SERIALIZER).items()}
    if (user := _users(topology, TOPOLOGY_COLUMNS).get(str(True))) is not None:
        users[_COLUMN_SERIALIZER] = (TOPOLOGY_COLUMNS, user)
    refs: dict[int, DriverRef] = {}
    for name, (key, component_name) in sorted(users.items()):
        if name in _CORE_SERIALIZERS:
            continue
        try:
            ref = resolve("serializer", name, {})
        except PluginError as error:
            msg = f"component {component_name!r}: {key}: {error}"
            raise PluginError(msg) from error
        encoding = cast("type[Serializer]", load_object(ref.entry)).encoding
        if other := refs.get(encoding):
            msg = (
                f"{TOPOLOGY_SERIALIZER}: {other.name!r} and {name!r} both write encoding {encoding}; "
                "use one of them in a topology"
            )
            raise ConfigError(msg)
        refs[encoding] = ref
    return tuple(refs.values())


def named_state_backends(topology: TopologyDefinition, profile: Profile, resolve: Resolver) -> tuple[DriverRef, ...]:
    """Return the state backends that components name, by name, without the memory.

    The options are those of the section ``state`` of the profile, if it is about the same driver.

    Raises:
        PluginError: when one is not installed or does not work; names the component.
    """
    refs: list[DriverRef] = []
    for name, component_name in sorted(_users(topology, TOPOLOGY_STATE_BACKEND).items()):
        if name == _MEMORY:
            continue
        if profile.state is not None and profile.state.name == name:
            refs.append(profile.state)
            continue
        try:
            refs.append(resolve("state", name, {}))
        except PluginError as error:
            msg = f"component {component_name!r}: {TOPOLOGY_STATE_BACKEND}: {error}"
            raise PluginError(msg) from error
    return tuple(refs)


def _users(topology: TopologyDefinition, key: str) -> dict[str, str]:
    """Return each value of a key, and the first component that has it."""
    users: dict[str, str] = {}
    for component in topology.components:
        users.setdefault(str(setting(merged_config(topology.config, component.config), key)), component.name)
    return users

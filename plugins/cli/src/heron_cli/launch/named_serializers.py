"""Which serializers a topology's components name, found before anything is changed."""

from __future__ import annotations

from typing import cast

from heron.api.api_constants import TOPOLOGY_SERIALIZER
from heron.api.config import merged_config, setting
from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, PluginError
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer
from heron_cli.profiles import Resolver

__all__ = ["named_serializers"]

_CORE = "pickle"  # every instance has it


def named_serializers(topology: TopologyDefinition, resolve: Resolver) -> tuple[DriverRef, ...]:
    """The serializers beside the core's own that instances of the topology need, by name.

    Raises:
        PluginError: when one is not installed or does not work; names the component.
        ConfigError: when two of them write the same number for their encodings, so that readers could not choose.
    """
    users: dict[str, str] = {}
    for component in topology.components:
        name = setting(merged_config(topology.config, component.config), TOPOLOGY_SERIALIZER)
        users.setdefault(str(name), component.name)
    refs: dict[int, DriverRef] = {}
    for name, component_name in sorted(users.items()):
        if name == _CORE:
            continue
        try:
            ref = resolve("serializer", name, {})
        except PluginError as error:
            msg = f"component {component_name!r}: {TOPOLOGY_SERIALIZER}: {error}"
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

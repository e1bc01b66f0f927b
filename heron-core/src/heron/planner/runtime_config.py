"""Changes of the configuration of a running topology. Pure.

The configuration is part of the physical plan. So each process has the new one with the next plan, and a process that
starts later has it too. Only few keys of the engine can change: the engine reads the others when a task starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from heron.api.api_constants import (
    TOPOLOGY_COMPONENT_OUTPUT_BPS,
    TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE,
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS,
    TOPOLOGY_INSPECT_TUPLES,
    TOPOLOGY_MAX_SPOUT_PENDING,
    TOPOLOGY_MESSAGE_TIMEOUT_SECS,
    TOPOLOGY_SHED,
    TOPOLOGY_TRACE_ONE_IN,
)
from heron.api.config import check_config
from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError, RemoteProtocolError, TopologyError, known, nearest
from heron.planner.shed_check import check_shedding, sheds_somewhere

__all__ = ["LIVE_KEYS", "ConfigChanges", "decode_changes", "encode_changes", "with_changes"]

ConfigChanges = Mapping[str, Mapping[str, object]]
"""New values by component and key; the component "" is the whole topology."""

LIVE_KEYS = frozenset(
    {
        TOPOLOGY_COMPONENT_OUTPUT_BPS,
        TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE,
        TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS,
        TOPOLOGY_INSPECT_TUPLES,
        TOPOLOGY_MAX_SPOUT_PENDING,
        TOPOLOGY_MESSAGE_TIMEOUT_SECS,
        TOPOLOGY_SHED,
        TOPOLOGY_TRACE_ONE_IN,
    }
)
"""The keys of the engine that take effect in a running topology. Keys of authors have no limit."""

_ENGINE = "topology."


def with_changes(definition: TopologyDefinition, changes: ConfigChanges) -> TopologyDefinition:
    """The definition with new values.

    Raises:
        ConfigError: when a component is unknown, a key of the engine cannot change while the topology runs, or a value
            is wrong.
    """
    place = f"topology {definition.name!r}"
    names = {each.name for each in definition.components}
    for component, values in changes.items():
        if component and component not in names:
            msg = f"{place}: has no component {component!r}{nearest(component, names)}; known: {known(names)}"
            raise ConfigError(msg)
        for key in values:
            if key.startswith(_ENGINE) and key not in LIVE_KEYS:
                msg = (
                    f"{place}: {key} cannot change while the topology runs; known: {known(LIVE_KEYS)}, and every key "
                    "of your own; submit the topology again to change others"
                )
                raise ConfigError(msg)
            if key == TOPOLOGY_SHED and not sheds_somewhere(definition):
                msg = (
                    f"{place}: {TOPOLOGY_SHED} can change only in a topology that was submitted with it; submit it "
                    "again with {'policy': 'none'}, which sheds nothing"
                )
                raise ConfigError(msg)
    components = tuple(
        replace(
            each,
            config=check_config(
                {**each.config, **changes.get(each.name, {})}, f"{place}: component {each.name!r}", component=True
            ),
        )
        for each in definition.components
    )
    config = check_config({**definition.config, **changes.get("", {})}, place)
    changed = replace(definition, components=components, config=config)
    try:
        check_shedding(changed)
    except TopologyError as error:
        raise ConfigError(str(error)) from error
    return changed


def encode_changes(changes: ConfigChanges) -> bytes:
    """The document of a request."""
    return msgspec.json.encode(changes)


def decode_changes(document: bytes) -> dict[str, dict[str, object]]:
    """The changes in a request.

    Raises:
        RemoteProtocolError: when the document is not that of `encode_changes`.
    """
    try:
        return msgspec.json.decode(document, type=dict[str, dict[str, object]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"the configuration of a request is not readable: {error}; use the version of heron-core that it runs"
        raise RemoteProtocolError(msg) from error

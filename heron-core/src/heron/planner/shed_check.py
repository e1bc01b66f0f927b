"""What ``topology.shed`` of a spout needs of its streams, and whether the tuples of a topology may have weights."""

from __future__ import annotations

from heron.api.api_constants import TOPOLOGY_COLUMNS, TOPOLOGY_SHED
from heron.api.config import merged_config
from heron.api.definition import ComponentDefinition, ComponentKind, StreamDefinition, TopologyDefinition
from heron.api.shedding import Shedding, SheddingPolicy, shedding_of
from heron.errors import TopologyError, known, nearest

__all__ = ["check_shedding", "shed_streams", "sheds_somewhere"]


def sheds_somewhere(definition: TopologyDefinition) -> bool:
    """Whether some spout has ``topology.shed``, also with the policy ``none``: tuples may have weights then."""
    return any(
        TOPOLOGY_SHED in {**definition.config, **each.config}
        for each in definition.components
        if each.kind is ComponentKind.SPOUT
    )


def shed_streams(shedding: Shedding | None, spout: ComponentDefinition) -> tuple[StreamDefinition, ...]:
    """The streams of a spout whose tuples may be shed."""
    if shedding is None or shedding.policy is SheddingPolicy.NONE:
        return ()
    return tuple(each for each in spout.outputs if shedding.stream in ("", each.name))


def check_shedding(definition: TopologyDefinition) -> None:
    """Checks ``topology.shed`` of each spout.

    Raises:
        TopologyError: when a spout emits columns, or lacks the named stream or field; when a bolt has the key.
    """
    for component in definition.components:
        place = f"component {component.name!r}: {TOPOLOGY_SHED}"
        if component.kind is not ComponentKind.SPOUT:
            if TOPOLOGY_SHED in component.config:
                msg = f"{place}: only a spout sheds tuples; give it to a spout, or to the topology for all spouts"
                raise TopologyError(msg)
            continue
        config = merged_config(definition.config, component.config)
        shedding = shedding_of(config, f"component {component.name!r}")
        if shedding is None or shedding.policy is SheddingPolicy.NONE:
            continue
        if config.get(TOPOLOGY_COLUMNS) is True:
            msg = f"{place}: the spout emits columns, and only rows are shed; emit rows, or remove the key"
            raise TopologyError(msg)
        names = [each.name for each in component.outputs]
        if shedding.stream and shedding.stream not in names:
            msg = (
                f"{place}.stream: no stream {shedding.stream!r}{nearest(shedding.stream, names)}; known: {known(names)}"
            )
            raise TopologyError(msg)
        for stream in shed_streams(shedding, component):
            for name in (*shedding.key, *([shedding.priority] if shedding.priority else [])):
                if name not in stream.fields:
                    msg = (
                        f"{place}: stream {stream.name!r} has no field {name!r}{nearest(name, stream.fields)}; "
                        f"known: {known(stream.fields)}"
                    )
                    raise TopologyError(msg)

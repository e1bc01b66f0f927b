"""The checks of a topology class when it is made: names, inputs, fields, and what can run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.errors import TopologyError, known, nearest
from heron_compat_streamparse.child_component import can_run
from heron_compat_streamparse.components.component import Component
from heron_compat_streamparse.specs.foreign import refuse_foreign
from heron_compat_streamparse.specs.spec import ComponentSpec

__all__ = ["check_topology", "specs_of"]


def specs_of(class_dict: Mapping[str, object], place: str) -> list[ComponentSpec]:
    """Return the specs among the attributes of a class, in their order.

    Raises:
        TopologyError: when two have one name, or an attribute is a component itself.
    """
    found: dict[str, ComponentSpec] = {}
    for name, value in class_dict.items():
        if isinstance(value, ComponentSpec):
            own = str(value.name)
            if own in found:
                msg = f"{place}: there are two components of the name {own!r}; rename one"
                raise TopologyError(msg)
            found[own] = value
        elif isinstance(value, Component):
            msg = f"{place}: {name} is a component, not its spec; write {name} = CLASS.spec(...)"
            raise TopologyError(msg)
    return list(found.values())


def check_topology(specs: Sequence[ComponentSpec], place: str) -> None:
    """Check the components of a topology.

    Raises:
        TopologyError: when one cannot run here, an input or output is wrong, or there is no spout.
    """
    by_name = {str(each.name): each for each in specs}
    for spec in specs:
        if spec.foreign is not None and not can_run(spec.foreign):
            refuse_foreign(spec.place, spec.foreign)
        spec.definition()  # inputs of bolts, outputs of spouts, direct streams
        _check_inputs(spec, by_name)
    if not any(each.is_spout for each in specs):
        msg = f"{place}: there is no spout; add one with Spout.spec()"
        raise TopologyError(msg)


def _check_inputs(spec: ComponentSpec, by_name: Mapping[str, ComponentSpec]) -> None:
    for source, grouping in spec.groupings().items():
        producer = by_name.get(source.component_id)
        if producer is None:
            close = nearest(source.component_id, by_name)
            msg = f"{spec.place}: input {source}: no such component{close}; known: {known(by_name)}"
            raise TopologyError(msg)
        streams = {each.name: each.fields for each in producer.output_streams()}
        if source.stream_id not in streams:
            msg = (
                f"{spec.place}: input {source}: no such stream{nearest(source.stream_id, streams)}; "
                f"known: {known(streams)}"
            )
            raise TopologyError(msg)
        for field in grouping.definition.fields:
            if field not in (fields := streams[source.stream_id]):
                close = nearest(field, fields)
                msg = f"{spec.place}: input {source}: no field {field!r}{close}; known: {known(fields)}"
                raise TopologyError(msg)

"""A topology as Storm's client writes it, in Thrift. This module encloses the untyped parts of the library."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import thriftpy2
from thriftpy2.thrift import TException
from thriftpy2.utils import deserialize

from heron.api import Grouping, Stream
from heron.errors import TopologyError

__all__ = ["StormComponent", "StormInput", "StormTopology", "decode_storm_topology"]

_BROKEN = (TException, struct.error, EOFError, ValueError, TypeError, AttributeError, OverflowError, MemoryError)


@dataclass(frozen=True, slots=True)
class StormInput:
    """A subscription of a bolt. The grouping is None if it is a class or an object of Java."""

    component: str
    stream: str
    grouping: Grouping | None


@dataclass(frozen=True, slots=True)
class StormComponent:
    """A spout or bolt.

    Attributes:
        name: its id.
        is_spout: whether it is a spout.
        shell: the command of a component in another language; None for a component in Java.
        inputs: what a bolt reads.
        outputs: its streams.
        parallelism: the number of its executors.
        config: its own configuration.
    """

    name: str
    is_spout: bool
    shell: tuple[str, ...] | None
    inputs: tuple[StormInput, ...]
    outputs: tuple[Stream, ...]
    parallelism: int
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StormTopology:
    """The components of a topology, by name, and how many worker hooks it has."""

    components: Mapping[str, StormComponent]
    worker_hooks: int


def decode_storm_topology(data: bytes, place: str, programs: Mapping[str, Sequence[str]]) -> StormTopology:
    """Return the topology that Storm's client has written with TBinaryProtocol.

    `programs` has the commands of components that are programs, though the document has an object of Java for them.

    Raises:
        TopologyError: when the bytes are none; names `place`.
    """
    interface = thriftpy2.load(str(Path(__file__).with_name("storm.thrift")), "heron_storm_thrift")
    try:
        found = cast("_Topology", deserialize(interface.StormTopology(), data))
        specs = [(name, each.spout_object, each.common, True) for name, each in found.spouts.items()]
        specs += [(name, each.bolt_object, each.common, False) for name, each in found.bolts.items()]
        components = {
            name: _component(name, programs.get(name) or _command(part), common, is_spout)
            for name, part, common, is_spout in specs
        }
        return StormTopology(components, len(found.worker_hooks or ()))
    except _BROKEN as error:
        msg = f"{place}: is no topology of Storm 2.x: {type(error).__name__}: {error}; use the jars of Storm 2.x"
        raise TopologyError(msg) from error


def _command(part: _Object) -> Sequence[str] | None:
    if part.shell is None:
        return None
    return [each for each in (part.shell.execution_command, part.shell.script) if each]


def _component(name: str, command: Sequence[str] | None, common: _Common, is_spout: bool) -> StormComponent:
    shell = tuple(command) if command else None
    inputs = tuple(StormInput(each.componentId, each.streamId, _grouping(way)) for each, way in common.inputs.items())
    outputs = [Stream(each.output_fields, stream, each.direct) for stream, each in sorted(common.streams.items())]
    config = cast("object", json.loads(common.json_conf)) if common.json_conf else {}
    if not isinstance(config, dict):
        msg = f"the configuration of {name!r} is not an object"
        raise TypeError(msg)
    return StormComponent(name, is_spout, shell, inputs, tuple(outputs), common.parallelism_hint or 1, config)


def _grouping(found: _Grouping) -> Grouping | None:
    if found.fields is not None:
        return Grouping.fields(*found.fields) if found.fields else Grouping.GLOBAL
    known = {
        "shuffle": Grouping.SHUFFLE,
        "all": Grouping.ALL,
        "none": Grouping.NONE,
        "direct": Grouping.DIRECT,
        "local_or_shuffle": Grouping.LOCAL_OR_SHUFFLE,
    }
    for name, grouping in known.items():
        if getattr(found, name) is not None:
            return grouping
    if found.custom_object is None and found.custom_serialized is None:
        msg = "a grouping is of an unknown kind"
        raise ValueError(msg)
    return None


class _StreamId(Protocol):
    componentId: str
    streamId: str


class _Grouping(Protocol):
    fields: list[str] | None
    custom_object: object
    custom_serialized: bytes | None


class _StreamInfo(Protocol):
    output_fields: list[str]
    direct: bool


class _Shell(Protocol):
    execution_command: str
    script: str


class _Object(Protocol):
    shell: _Shell | None


class _Common(Protocol):
    inputs: Mapping[_StreamId, _Grouping]
    streams: Mapping[str, _StreamInfo]
    parallelism_hint: int | None
    json_conf: str | None


class _Spout(Protocol):
    spout_object: _Object
    common: _Common


class _Bolt(Protocol):
    bolt_object: _Object
    common: _Common


class _Topology(Protocol):
    spouts: Mapping[str, _Spout]
    bolts: Mapping[str, _Bolt]
    worker_hooks: Sequence[bytes] | None

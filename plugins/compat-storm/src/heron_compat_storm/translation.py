"""From a captured topology of Storm to a topology of Heron."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from heron.api import GlobalStreamId, Grouping, HeronComponentSpec, Stream, TopologyBuilder
from heron.errors import TopologyError
from heron_compat_storm.jar_file import RESOURCES
from heron_compat_storm.storm_config import OF_COMPONENTS, TopologyConfig, component_config, topology_config
from heron_compat_storm.storm_topology import StormComponent, StormInput, StormTopology, decode_storm_topology
from heron_runtime_jvm import JvmBolt, JvmSpout, direct_stream, heron_name
from heron_runtime_multilang import ShellBolt, ShellSpout

__all__ = ["CLASS_PATH", "SUBMITTED", "TOPOLOGY", "heron_topology", "submit_captured"]

TOPOLOGY, SUBMITTED = "topology.thrift", "submitted.json"
"""The files that `heron_compat_storm.storm_jar` writes beside the program."""

CLASS_PATH = ("storm/*", "topology/*")
"""Storm's jars, if the topology's jar does not bring them, and the topology's, relative to the program."""

_SERIAL, _HEAP = "-XX:+UseSerialGC", "-Xmx768m"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")  # a JVM refuses to start with two
_CALL_LIMIT_S = 600.0  # Storm has no limit for a call of a component, and a JVM that hangs has to end some time

_log = logging.getLogger(__name__)


def submit_captured(program: str) -> None:
    """Submit the topology of the folder of `program`, which a compat plugin has written.

    Raises:
        TopologyError: when it cannot run on Heron.
        ConfigError: when a key of its configuration has a wrong value.
    """
    builder, ignored = heron_topology(Path(program).parent)
    for place, keys in ignored.items():
        _log.warning("%s: %s: no effect on Heron", place, ", ".join(keys))
    builder.build_and_submit()


def heron_topology(folder: Path) -> tuple[TopologyBuilder, Mapping[str, Sequence[str]]]:
    """Return the topology of a folder, and the keys without effect by their place.

    Raises:
        TopologyError: when it cannot run on Heron.
        ConfigError: when a key of its configuration has a wrong value.
    """
    submitted = _Submitted(**json.loads((folder / SUBMITTED).read_bytes()))
    place = f"topology {submitted.name!r}"
    topology = decode_storm_topology((folder / TOPOLOGY).read_bytes(), place, submitted.programs)
    config = topology_config(submitted.conf, place)
    builder = TopologyBuilder(submitted.name)
    builder.set_config(config.heron)
    translation = _Translation(topology, config, submitted, folder)
    builder.add_spec(*(translation.spec(each) for each in topology.components.values()))
    builder.build()
    ignored = {place: config.ignored, **translation.ignored}
    if topology.worker_hooks:
        ignored[f"{place}, worker hooks"] = (f"{topology.worker_hooks} objects",)
    return builder, {where: keys for where, keys in ignored.items() if keys}


@dataclass(frozen=True, slots=True)
class _Submitted:
    """What main has submitted besides the Thrift document.

    `partial_keys` has ``[consumer, component, stream, [field...]]`` for each input with Storm's `PartialKeyGrouping`,
    `programs` the command of each `ShellBolt` and `ShellSpout` whose class adds nothing to it.
    """

    name: str
    conf: Mapping[str, object]
    partial_keys: Sequence[tuple[str, str, str, list[str]]]
    programs: Mapping[str, list[str]]


class _Translation:
    """The components of one topology."""

    def __init__(self, topology: StormTopology, config: TopologyConfig, submitted: _Submitted, folder: Path) -> None:
        self.ignored: dict[str, tuple[str, ...]] = {}
        self._topology = topology
        self._config = config
        self._resources = RESOURCES if (folder / RESOURCES).is_dir() else ""
        self._class_path = [each for each in CLASS_PATH if any((folder / each).parent.glob("*.jar"))]
        self._partial_keys = {(bolt, source, stream): fields for bolt, source, stream, fields in submitted.partial_keys}
        self._defaults = {key: value for key, value in config.storm.items() if key in OF_COMPONENTS}
        self._own_keys = {key: value for key, value in config.storm.items() if not key.startswith("topology.")}

    def spec(self, component: StormComponent) -> HeronComponentSpec:
        place = f"component {component.name!r}"
        own = component_config({**self._defaults, **component.config}, place)
        self.ignored[place] = own.ignored
        tasks = own.tasks or component.parallelism
        common: dict[str, object] = {
            "name": heron_name(component.name),
            "par": min(tasks, own.most_tasks or tasks),
            "outputs": [*map(_renamed, component.outputs), *self._direct_streams(component)],
        }
        if not component.is_spout:
            common["inputs"] = self._inputs(component)
        if component.shell is not None:
            kind = ShellSpout if component.is_spout else ShellBolt
            config = {**self._own_keys, **own.heron}
            shell = {"command": list(component.shell), "work_folder": self._resources}
            return _spec(kind, {**common, **shell, "config": config})
        jvm: dict[str, object] = {
            "config": own.heron,
            "class_path": self._class_path,
            "timeout_s": _CALL_LIMIT_S,
            "storm_topology": TOPOLOGY,
            "storm_component": component.name,
            "storm_config": self._config.storm,
        }
        if options := [*self._config.java_options, *own.java_options]:
            collector = () if any(_COLLECTOR.match(each) for each in options) else (_SERIAL,)
            jvm["java_options"] = [*collector, _HEAP, *options]
        return _spec(JvmSpout if component.is_spout else JvmBolt, {**common, **jvm})

    def _inputs(self, bolt: StormComponent) -> dict[GlobalStreamId, Grouping]:
        found: dict[GlobalStreamId, Grouping] = {}
        for each in bolt.inputs:
            grouping, stream = each.grouping, heron_name(each.stream)
            if self._is_chosen(bolt, each):
                grouping, stream = Grouping.DIRECT, direct_stream(each.stream, bolt.name)
            elif grouping is None:
                grouping = Grouping.PARTIAL_KEY(*self._partial_keys[bolt.name, each.component, each.stream])
            found[GlobalStreamId(heron_name(each.component), stream)] = grouping
        return found

    def _direct_streams(self, emitter: StormComponent) -> list[Stream]:
        """Return one more stream for each consumer whose tasks are chosen by the JVM of `emitter`."""
        fields = {each.stream_id: each.fields for each in emitter.outputs}
        return [
            Stream(fields[each.stream], direct_stream(each.stream, bolt.name), direct=True)
            for bolt in self._topology.components.values()
            for each in bolt.inputs
            if each.component == emitter.name and each.stream in fields and self._is_chosen(bolt, each)
        ]

    def _is_chosen(self, bolt: StormComponent, each: StormInput) -> bool:
        """Whether a class of Java chooses the tasks.

        Raises:
            TopologyError: when the emitter is not in Java.
        """
        if each.grouping is not None or (bolt.name, each.component, each.stream) in self._partial_keys:
            return False
        emitter = self._topology.components.get(each.component)
        if emitter is not None and emitter.shell is not None:
            msg = (
                f"component {bolt.name!r}: input {each.component}:{each.stream}: a custom grouping in Java has to run "
                f"in the JVM of its emitter, and {each.component!r} is the program {emitter.shell[0]!r}; use another "
                "grouping"
            )
            raise TopologyError(msg)
        return True


def _renamed(stream: Stream) -> Stream:
    return Stream(stream.fields, heron_name(stream.stream_id), stream.direct)


class _Class:
    """A class whose `spec` takes these arguments."""

    def spec(self, **arguments: object) -> HeronComponentSpec:
        raise NotImplementedError


def _spec(kind: type, arguments: Mapping[str, object]) -> HeronComponentSpec:
    return cast("_Class", kind).spec(**arguments)

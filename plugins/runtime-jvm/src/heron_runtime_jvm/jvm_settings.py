"""What `spec` takes about a component in a JVM, and what the task makes of it.

The settings travel in the configuration of the component, under the key `JVM_KEY`. Those that every child has are
checked as those of a `ShellBolt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TypedDict, cast

from heron.api import Stream
from heron.author_text import class_name, short_text
from heron.errors import TopologyError, known, nearest
from heron_runtime_multilang import ChildArguments
from heron_runtime_multilang.child_settings import CONFIG_KEY, ChildSettings, child_settings

__all__ = ["JVM_KEY", "JvmArguments", "JvmSettings", "direct_stream", "heron_name", "jvm_settings"]

JVM_KEY = "jvm"

_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_OF_CHILD = (
    "resources",
    "work_folder",
    "timeout_s",
    "start_timeout_s",
    "finish_timeout_s",
    "max_pending",
    "message_bytes",
)
_TEXTS = ("java_class", "storm_topology", "storm_component", "java")
_LISTS_OF_TEXTS = ("class_path", "java_options")


class JvmArguments(TypedDict, total=False):
    """Arguments of `JvmBolt.spec` and `JvmSpout.spec`. A subclass may set them as attributes.

    java_class: the class of the spout or bolt, such as ``com.example.Count``.
    arguments: plain data for its constructor: the constructor with this number of parameters is called.
    storm_topology: instead of `java_class`: a file in the working folder with a topology of Storm, in Thrift's binary
        protocol.
    storm_component: the name of the component in that file, if it differs from the name here.
    storm_config: the configuration that the topology was submitted with. With `java_class`: further keys for the
        component's `prepare` or `open`.
    class_path: jars, folders and ``FOLDER/*``, relative to the working folder, or absolute. It has to have the
        jars of storm-client.
    outputs: field names of the default stream, and `Stream` objects.
    java: the program; without it that of ``JAVA_HOME``, else that of the ``PATH``.
    java_options: options of the JVM; ``["-XX:+UseSerialGC", "-Xmx768m"]``.
    resources, work_folder, timeout_s, start_timeout_s, finish_timeout_s, message_bytes: as for `ShellBolt`.
    max_pending: the tuples that the JVM has and has not executed; a bolt waits above it; 10,000. A batch may exceed it.
    """

    java_class: str
    arguments: Sequence[object]
    storm_topology: str
    storm_component: str
    storm_config: Mapping[str, object]
    class_path: Sequence[str]
    outputs: Sequence[str | Stream]
    java: str
    java_options: Sequence[str]
    resources: str
    work_folder: str
    timeout_s: float
    start_timeout_s: float
    finish_timeout_s: float
    max_pending: int
    message_bytes: int


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """A component in a JVM; see `JvmArguments`. `child` has the settings that every child has, as JSON."""

    child: Mapping[str, object]
    java_class: str = ""
    arguments: tuple[object, ...] = ()
    storm_topology: str = ""
    storm_component: str = ""
    storm_config: Mapping[str, object] | None = None
    class_path: tuple[str, ...] = ()
    java: str = "java"
    java_options: tuple[str, ...] = ("-XX:+UseSerialGC", "-Xmx768m")  # as much as a worker of Storm has

    @classmethod
    def of_config(cls, config: Mapping[str, object]) -> JvmSettings:
        """Return the settings in the configuration of a component.

        Raises:
            TopologyError: when `spec` did not put them there.
        """
        stored = config.get(JVM_KEY)
        if not isinstance(stored, Mapping):
            msg = f"the configuration has no {JVM_KEY!r}; make the component with JvmBolt.spec or JvmSpout.spec"
            raise TopologyError(msg)
        tuples = {name: tuple(stored[name]) for name in ("arguments", *_LISTS_OF_TEXTS)}
        return cls(**{**stored, **tuples})

    def as_config(self) -> dict[str, object]:
        """Return the settings as JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def child_settings(self) -> ChildSettings:
        """Return what every child has."""
        return ChildSettings.of_config({CONFIG_KEY: self.child})


def direct_stream(stream: str, consumer: str) -> str:
    """Return the name of the stream on which a task emits what a custom grouping of Storm sends to a consumer.

    Its emitter declares it as a direct stream. The consumer subscribes to it instead of `stream`.
    """
    return f"{heron_name(stream)}--{heron_name(consumer)}"


def heron_name(storm_name: str) -> str:
    """Return the name that a component or stream of Storm has in Heron, which has fewer characters for names."""
    return _OTHER.sub(lambda found: f"-x{ord(found[0]):x}-", storm_name)


def jvm_settings(component: type, arguments: JvmArguments, place: str) -> JvmSettings:
    """Return the settings of a component: `arguments`, and what its class sets otherwise.

    Raises:
        TopologyError: when an argument is unknown, is missing, or has the wrong type or range.
    """
    own = [each.name for each in fields(JvmSettings) if each.name != "child"]
    names = [*own, *_OF_CHILD, "outputs"]
    for name in arguments:
        if name not in names:
            msg = f"{place}: unknown argument {short_text(name)}{nearest(name, names)}; known: {known(names)}"
            raise TopologyError(msg)
    given = {
        name: value for name in names if (value := arguments.get(name, getattr(component, name, None))) is not None
    }
    limits = cast("ChildArguments", {"command": "java"} | {name: given[name] for name in _OF_CHILD if name in given})
    child = child_settings(component, limits, place)
    values = {name: given[name] for name in own if name in given}
    _check(values, place)
    for name in ("arguments", *_LISTS_OF_TEXTS):
        if name in values:
            values[name] = tuple(cast("Sequence[object]", values[name]))
    return JvmSettings(child.as_config(), **values)  # type: ignore[arg-type]  # `_check` refuses others


def _check(values: Mapping[str, object], place: str) -> None:
    for name in _TEXTS:
        if name in values and (not isinstance(values[name], str) or not values[name]):
            msg = f"{place}: {name} {short_text(values[name])} is not a text of at least one character"
            raise TopologyError(msg)
    if ("java_class" in values) is ("storm_topology" in values):
        msg = f"{place}: give java_class, such as 'com.example.Count', or storm_topology, a file; one of them"
        raise TopologyError(msg)
    for name in ("arguments", *_LISTS_OF_TEXTS):
        value = values.get(name, ())
        texts = name in _LISTS_OF_TEXTS
        if not isinstance(value, list | tuple) or (texts and not all(isinstance(each, str) and each for each in value)):
            what = "a list of texts" if texts else "a list"
            msg = f"{place}: {name} {short_text(value)} is not {what}"
            raise TopologyError(msg)
    if not values.get("class_path"):
        msg = f"{place}: class_path is empty; give the jars of storm-client and of the component"
        raise TopologyError(msg)
    config = values.get("storm_config", {})
    for name, value in (("arguments", values.get("arguments", ())), ("storm_config", config)):
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            msg = f"{place}: {name} is not plain data: {error}; give None, bool, int, float, str, list and dict"
            raise TopologyError(msg) from error
    if not isinstance(config, Mapping):
        msg = f"{place}: storm_config is a {class_name(config)}; give a dict"
        raise TopologyError(msg)

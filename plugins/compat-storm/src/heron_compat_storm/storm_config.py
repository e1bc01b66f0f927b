"""What Storm's configuration keys become.

A key that Heron has too, with the same meaning, is taken over. Some of Storm's own keys are mapped, or have their
effect inside the JVM of a component. The others of Storm have no effect, and a warning names them. Keys that begin
otherwise than ``topology.`` belong to the program.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from heron.api.api_constants import (
    TOPOLOGY_AUTO_TASK_HOOKS,
    TOPOLOGY_NAME,
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_STMGRS,
    TOPOLOGY_TICK_TUPLE_FREQ_SECS,
    TOPOLOGY_WORKER_CHILDOPTS,
)
from heron.api.config import CONFIG_KEYS, TopologyReliabilityMode
from heron.author_text import short_text
from heron.errors import ConfigError

__all__ = ["OF_COMPONENTS", "ComponentConfig", "TopologyConfig", "component_config", "topology_config"]

_OWN = "topology."
_WORKERS = "topology.workers"
_ACKERS = "topology.acker.executors"
_MOST_TASKS = "topology.max.task.parallelism"
_TASKS = "topology.tasks"
_OPTIONS = (TOPOLOGY_WORKER_CHILDOPTS, "topology.worker.gc.childopts")
_HEAP_MB = "topology.component.resources.onheap.memory.mb"
_FILLED_IN = "%"  # Storm puts ports and ids of its workers into options with this character

OF_COMPONENTS = (_TASKS, _MOST_TASKS, _HEAP_MB)
"""Keys that a topology may set for all its components."""

_JAVA_SERIALIZATION = "topology.fall.back.on.java.serialization"
"""False in Storm. There, only tuples between workers are serialised; here each task is a process."""

_MAPPED = frozenset({_WORKERS, _ACKERS, _MOST_TASKS, _TASKS, _HEAP_MB, *_OPTIONS, TOPOLOGY_NAME})
_IN_THE_JVM = (
    "topology.kryo.",
    _JAVA_SERIALIZATION,
    "topology.skip.missing.kryo.registrations",
    "topology.tuple.serializer",
    "topology.bolts.",  # windows
    "topology.state.",
    "topology.multilang.serializer",
    "topology.shellbolt.max.pending",
    "topology.subprocess.timeout.secs",
)
_NOT_OURS = frozenset({TOPOLOGY_AUTO_TASK_HOOKS, TOPOLOGY_WORKER_CHILDOPTS})  # classes and options of Java
_SECRETS = "storm.zookeeper.topology.auth."  # StormSubmitter makes them for Storm's own ZooKeeper


@dataclass(frozen=True, slots=True)
class TopologyConfig:
    """The configuration of a topology.

    Attributes:
        heron: for Heron.
        storm: for the JVMs: what was submitted, and a default that Storm does not have.
        java_options: options of each JVM.
        ignored: keys without effect.
    """

    heron: dict[str, object]
    storm: dict[str, object]
    java_options: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """The configuration of a component: as `TopologyConfig`, the number of tasks, and its limit, or None."""

    heron: dict[str, object]
    java_options: tuple[str, ...]
    tasks: int | None
    most_tasks: int | None
    ignored: tuple[str, ...]


def topology_config(conf: Mapping[str, object], place: str) -> TopologyConfig:
    """Divide the configuration that a topology was submitted with.

    Raises:
        ConfigError: when the value of a mapped key is wrong.
    """
    conf = {key: value for key, value in conf.items() if value is not None and not key.startswith(_SECRETS)}
    heron = _heron(conf, component=False)
    heron.setdefault(TOPOLOGY_STMGRS, _number(conf.get(_WORKERS, 1), f"{place}: {_WORKERS}", 1))
    ackers = _number(conf.get(_ACKERS, 1), f"{place}: {_ACKERS}", 0)
    mode = TopologyReliabilityMode.ATLEAST_ONCE if ackers else TopologyReliabilityMode.ATMOST_ONCE
    heron.setdefault(TOPOLOGY_RELIABILITY_MODE, mode.value)
    options = tuple(each for key in _OPTIONS for each in _words(conf.get(key, ()), f"{place}: {key}"))
    ignored = _ignored(conf, heron)
    conf.setdefault(_JAVA_SERIALIZATION, True)
    return TopologyConfig(heron, conf, options, ignored)


def component_config(conf: Mapping[str, object], place: str) -> ComponentConfig:
    """Divide the configuration of a component, with what the topology has of the keys `OF_COMPONENTS`.

    Raises:
        ConfigError: when the value of a mapped key is wrong.
    """
    conf = {key: value for key, value in conf.items() if value is not None}
    heron = _heron(conf, component=True)
    tasks, most = (
        None if conf.get(key) is None else _number(conf[key], f"{place}: {key}", 1) for key in (_TASKS, _MOST_TASKS)
    )
    heap = conf.get(_HEAP_MB)
    options = () if not isinstance(heap, int | float) else (f"-Xmx{int(heap)}m",)
    return ComponentConfig(heron, options, tasks, most, _ignored(conf, heron))


def _heron(conf: Mapping[str, object], *, component: bool) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in conf.items():
        known_key = CONFIG_KEYS.get(key)
        if known_key is None or key in _NOT_OURS or key == TOPOLOGY_NAME or (component and not known_key.component):
            continue
        if key == TOPOLOGY_TICK_TUPLE_FREQ_SECS and not value:
            continue  # no ticks, in Storm
        found[key] = value
    return found


def _ignored(conf: Mapping[str, object], heron: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        sorted(
            key
            for key in conf
            if key.startswith(_OWN)
            and key not in heron
            and key not in _MAPPED
            and key != TOPOLOGY_TICK_TUPLE_FREQ_SECS
            and not key.startswith(_IN_THE_JVM)
        )
    )


def _number(value: object, place: str, least: int) -> int:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    if not isinstance(whole, int) or isinstance(whole, bool) or whole < least:
        msg = f"{place}: {short_text(value)} is not a whole number of at least {least}; give one"
        raise ConfigError(msg)
    return whole


def _words(value: object, place: str) -> list[str]:
    """Return options of a JVM, which Storm takes as text or as a list."""
    parts = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]
    if len(parts) != (len(value) if isinstance(value, list | tuple) else 1):
        msg = f"{place}: {short_text(value)} is neither text nor a list of text; give '-Xmx256m'"
        raise ConfigError(msg)
    try:
        return [word for each in parts for word in shlex.split(each) if _FILLED_IN not in word]
    except ValueError as error:
        msg = f"{place}: {short_text(value)}: {error}; give '-Xmx256m'"
        raise ConfigError(msg) from error

"""The table of known ``topology.`` keys: type, unit, range, default and meaning. Code and documentation read it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from heron.api import api_constants as keys

__all__ = ["CONFIG_KEYS", "ConfigKey", "ValueType"]

_GIB = 1024 * 1024 * 1024


class ValueType(enum.Enum):
    """The type of a value after `heron.api.config.check_config`."""

    BOOL = "true or false"
    INT = "a whole number"
    FLOAT = "a number"
    STRING = "a string"
    CHOICE = "a choice"
    JSON = "any JSON value"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A configuration key.

    Attributes:
        name: the key itself.
        type: the type of its values.
        meaning: one line for the documentation.
        default: the value when the key is absent; None means unset.
        unit: the unit of a number.
        low: the minimum of a number, or None.
        high: the greatest value of a number, or None.
        choices: the values of a CHOICE.
        component: whether a component may set the key for itself.
        off: a value outside the range that switches the limit off, or None.
    """

    name: str
    type: ValueType
    meaning: str
    default: object = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    component: bool = False
    off: int | None = None


def _bool(name: str, meaning: str, default: bool = False, component: bool = False) -> ConfigKey:
    return ConfigKey(name, ValueType.BOOL, meaning, default, component=component)


def _int(name: str, meaning: str, default: int | None, unit: str, low: int = 1, high: int | None = None) -> ConfigKey:
    return ConfigKey(name, ValueType.INT, meaning, default, unit, low, high)


def _float(name: str, meaning: str, default: float | None, unit: str, low: float = 0.0) -> ConfigKey:
    return ConfigKey(name, ValueType.FLOAT, meaning, default, unit, low)


def _text(name: str, meaning: str) -> ConfigKey:
    return ConfigKey(name, ValueType.STRING, meaning)


def _per_component(key: ConfigKey) -> ConfigKey:
    return replace(key, component=True)


_RUN = (
    _text(keys.TOPOLOGY_NAME, "set from the builder's or class's name; cannot be changed here"),
    _bool(keys.TOPOLOGY_DEBUG, "emits by plain code instead of generated code; it logs nothing", component=True),
    _bool(
        keys.TOPOLOGY_INSPECT_TUPLES,
        "whether `heron inspect`, `capture` and errors may show values of tuples",
        component=True,
    ),
    _int(keys.TOPOLOGY_STMGRS, "containers, besides container 0", 1, "containers", high=10_000),
    _int(
        keys.TOPOLOGY_KEY_GROUPS,
        "key groups; the largest parallelism of a keyed bolt",
        1024,
        "groups",
        high=65_536,
    ),
    _float(keys.TOPOLOGY_MESSAGE_TIMEOUT_SECS, "a tuple tree that takes longer fails", 30.0, "s", 0.001),
    _bool(keys.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS, "whether tuple trees time out", default=True),
    _per_component(
        _int(
            keys.TOPOLOGY_COMPONENT_PARALLELISM,
            "without effect: spec's par gives the tasks",
            1,
            "tasks",
            high=10_000,
        )
    ),
    _per_component(_int(keys.TOPOLOGY_MAX_SPOUT_PENDING, "incomplete roots per spout task", 60_000, "roots")),
    ConfigKey(
        keys.TOPOLOGY_RELIABILITY_MODE,
        ValueType.CHOICE,
        "the delivery guarantee of each tuple",
        keys.TopologyReliabilityMode.ATMOST_ONCE.value,
        choices=tuple(mode.value for mode in keys.TopologyReliabilityMode),
    ),
    _bool(keys.TOPOLOGY_ACKING, "deprecated: true is ATLEAST_ONCE, false is ATMOST_ONCE"),
    _per_component(_float(keys.TOPOLOGY_TICK_TUPLE_FREQ_SECS, "period of ticks; unset: no ticks", None, "s", 0.001)),
    ConfigKey(
        keys.TOPOLOGY_SERIALIZER,
        ValueType.STRING,
        "the installed serializer that turns emitted tuples into bytes",
        "pickle",
        component=True,
    ),
    _bool(keys.TOPOLOGY_COLUMNS, "the component exchanges columns; set from its class", component=True),
    ConfigKey(
        keys.TOPOLOGY_COLUMNS_COMPRESSION,
        ValueType.STRING,
        "compression of emitted columns: none, lz4 or zstd; STREAM: VALUE, ... for single streams",
        "none",
        component=True,
    ),
    ConfigKey(
        keys.TOPOLOGY_STATE_BACKEND,
        ValueType.STRING,
        "the installed state backend that holds keyed state; memory: dicts of the task",
        "memory",
        component=True,
    ),
    _text(keys.TOPOLOGY_SERIALIZER_CLASSNAME, "heronpy's IHeronSerializer as module:Class; see topology.serializer"),
    ConfigKey(keys.TOPOLOGY_AUTO_TASK_HOOKS, ValueType.JSON, "task hooks of every task, module:Class each", ()),
    ConfigKey(
        keys.TOPOLOGY_ON_ERROR,
        ValueType.CHOICE,
        "reaction of an instance to an exception in process; dead_letter, effectively once: keep the tuple",
        "continue",
        choices=("continue", "dead_letter", "stop"),
        component=True,
    ),
    ConfigKey(
        keys.TOPOLOGY_ON_FAILURE,
        ValueType.CHOICE,
        "reaction to a component that cannot start; unset: the engine's setting",
        choices=("restart", "stop"),
    ),
    _int(
        keys.TOPOLOGY_TMANAGER_STANDBYS,
        "standby topology managers, one container each; unset: the engine's setting",
        None,
        "processes",
        0,
        10_000,
    ),
    _bool(keys.TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE, "drops and counts tuples instead of back pressure"),
    ConfigKey(
        keys.TOPOLOGY_COMPONENT_OUTPUT_BPS,
        ValueType.INT,
        "limit of sent data, divided among the component's tasks; -1: no limit",
        -1,
        "bytes/s",
        1,
        component=True,
        off=-1,
    ),
    ConfigKey(
        keys.TOPOLOGY_SHED,
        ValueType.JSON,
        "which tuples a spout sheds in overload, and when: {policy, rate or latency}; unset: none",
        component=True,
    ),
    ConfigKey(
        keys.TOPOLOGY_TRACE_ONE_IN,
        ValueType.INT,
        "one of this number of roots is traced; 0: none",
        0,
        "roots",
        1,
        component=True,
        off=0,
    ),
    _per_component(
        _int(
            keys.TOPOLOGY_REPLAY_ATTEMPTS,
            "how often a failed root is emitted again, then it is a dead letter; unset: the spout does it",
            None,
            "replays",
            high=1_000,
        )
    ),
    _per_component(
        _float(keys.TOPOLOGY_REPLAY_BACKOFF_SECS, "wait before the first replay; doubles, up to 30 s", 0.1, "s", 0.001)
    ),
    _per_component(
        _int(
            keys.TOPOLOGY_REPLAY_BYTES,
            "values that a spout task keeps for replays; at the limit it emits nothing new",
            64 * 1024 * 1024,
            "bytes",
            1024,
        )
    ),
    _per_component(
        _int(
            keys.TOPOLOGY_DEAD_LETTERS_BYTES,
            "files of dead letters of a task, if no bolt subscribes to them",
            64 * 1024 * 1024,
            "bytes",
            64 * 1024,
        )
    ),
    _float(keys.TOPOLOGY_UPDATE_DEACTIVATE_WAIT_SECS, "wait between pause and update", 0.0, "s"),
    _float(keys.TOPOLOGY_UPDATE_REACTIVATE_WAIT_SECS, "wait for the topology after an update", 600.0, "s"),
    ConfigKey(keys.TOPOLOGY_OBJECTIVES, ValueType.JSON, "objectives of the health policy slo, a list of text", ()),
    ConfigKey(keys.TOPOLOGY_ENVIRONMENT, ValueType.JSON, "environment of the instances, {name: string}"),
)

_STATE = (
    _float(
        keys.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
        "period of checkpoints; at least once, setting it switches them on",
        300.0,
        "s",
        0.001,
    ),
    _text(keys.TOPOLOGY_STATEFUL_START_FROM, "checkpoint that the first start loads, RUN/NUMBER"),
    _bool(keys.TOPOLOGY_STATEFUL_START_CLEAN, "ignores checkpoints at the first start"),
    _int(keys.TOPOLOGY_STATEFUL_CHECKPOINTMANAGER_RAM, "memory of the checkpoint manager", _GIB, "bytes"),
    _bool(keys.TOPOLOGY_STATEFUL_SPILL_STATE, "passes state through local files"),
    _text(keys.TOPOLOGY_STATEFUL_SPILL_STATE_LOCATION, "folder of these files"),
)

_RESOURCES = (
    _float(keys.TOPOLOGY_CONTAINER_CPU_REQUESTED, "per container; unset: computed", None, "cores"),
    _int(keys.TOPOLOGY_CONTAINER_RAM_REQUESTED, "per container; unset: computed", None, "bytes"),
    _int(keys.TOPOLOGY_CONTAINER_DISK_REQUESTED, "per container; unset: computed", None, "bytes"),
    _float(keys.TOPOLOGY_CONTAINER_MAX_CPU_HINT, "upper bound per container", None, "cores"),
    _int(keys.TOPOLOGY_CONTAINER_MAX_RAM_HINT, "upper bound per container", None, "bytes"),
    _int(keys.TOPOLOGY_CONTAINER_MAX_DISK_HINT, "upper bound per container", None, "bytes"),
    _int(keys.TOPOLOGY_CONTAINER_MAX_INSTANCES, "per container, for ffd and rcrr", 10, "instances"),
    _int(keys.TOPOLOGY_CONTAINER_PADDING_PERCENTAGE, "minimum padding, for ffd and rcrr", 10, "percent", 0, 100),
    _int(keys.TOPOLOGY_CONTAINER_RAM_PADDING, "added to a container", _GIB, "bytes", 0),
    _float(keys.TOPOLOGY_CONTAINER_CPU_PADDING, "added to a container", 1.0, "cores"),
    _text(keys.TOPOLOGY_COMPONENT_CPUMAP, "cores by component: 'name:value,name:value'"),
    _text(keys.TOPOLOGY_COMPONENT_RAMMAP, "bytes by component: 'name:value,name:value'"),
    _text(keys.TOPOLOGY_COMPONENT_DISKMAP, "bytes by component: 'name:value,name:value'"),
    ConfigKey(
        keys.TOPOLOGY_PACKING_FFD_SORTING_STRATEGY,
        ValueType.CHOICE,
        "the resource that is packed first, for ffd",
        "RAM_FIRST",
        choices=("RAM_FIRST", "CPU_FIRST"),
    ),
    _int(keys.TOPOLOGY_STMGR_RAM, "memory of a stream manager", _GIB, "bytes"),
    _int(keys.TOPOLOGY_METRICSMGR_RAM, "memory of a metrics manager", _GIB, "bytes"),
)

_INFORMATION = (
    _text(keys.TOPOLOGY_TEAM_NAME, "shown, without effect"),
    _text(keys.TOPOLOGY_TEAM_EMAIL, "shown, without effect"),
    _text(keys.TOPOLOGY_TEAM_ENVIRONMENT, "shown, without effect"),
    _text(keys.TOPOLOGY_CAP_TICKET, "shown, without effect"),
    _text(keys.TOPOLOGY_PROJECT_NAME, "shown, without effect"),
    _text(keys.TOPOLOGY_WORKER_CHILDOPTS, "concerns Java, without effect"),
    _per_component(_text(keys.TOPOLOGY_COMPONENT_JVMOPTS, "concerns Java, without effect")),
    _text(keys.TOPOLOGY_ADDITIONAL_CLASSPATH, "concerns Java, without effect"),
)

CONFIG_KEYS: dict[str, ConfigKey] = {key.name: key for key in (*_RUN, *_STATE, *_RESOURCES, *_INFORMATION)}

"""The configuration of topologies and components, and its check.

Keys that begin with ``topology.`` belong to the engine and must be known. Every other key belongs to the author.
Values are JSON, because other processes and languages read a definition. As in heronpy, authors may write numbers and
truth values as strings; the check converts them to the type of their key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from heron.api.api_constants import (
    TOPOLOGY_ACKING,
    TOPOLOGY_COLUMNS_COMPRESSION,
    TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE,
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS,
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TopologyReliabilityMode,
)
from heron.api.columns import compression_of
from heron.api.config_key import CONFIG_KEYS, ConfigKey, ValueType
from heron.api.names import is_a
from heron.api.shedding import shedding_of
from heron.author_text import short_text
from heron.errors import ConfigError, known, nearest

__all__ = [
    "CONFIG_KEYS",
    "ConfigKey",
    "TopologyReliabilityMode",
    "ValueType",
    "check_config",
    "json_object",
    "json_value",
    "merged_config",
    "setting",
    "takes_checkpoints",
]

_PREFIX = "topology."
_TRUTH = {"true": True, "false": False}

_DEEPEST = 100  # levels of a value; far below the depth that Python and the parsers of JSON allow
_LONGEST_PLACE = 100  # characters


def check_config(config: Mapping[str, object], place: str, *, component: bool = False) -> dict[str, object]:
    """Return the configuration with every value checked and converted to the type of its key.

    Args:
        config: the configuration as the author gave it.
        place: the owner of the configuration, the first part of every error (``"topology 'words'"``).
        component: whether a component owns it; a component may not set the keys of the whole topology.

    Raises:
        ConfigError: when a key is not a string, or is an unknown ``topology.`` key (names the nearest known one); when
            a value has the wrong type or range, or is not JSON (names the path of its key).
    """
    if not is_a(config, Mapping):
        msg = f"{place}: the configuration {short_text(config, 60)} is not a dict; give {{'key': value}}"
        raise ConfigError(msg)
    checked: dict[str, object] = {}
    for key, value in config.items():
        if not is_a(key, str):
            msg = f"{place}: the key {short_text(key)} is a {type(key).__name__}, not a string; name keys by strings"
            raise ConfigError(msg)
        if not key.startswith(_PREFIX):
            checked[key] = json_value(value, f"{place}: {key}")
            continue
        known_key = CONFIG_KEYS.get(key)
        if known_key is None:
            msg = (
                f"{place}: unknown key {key!r}{nearest(key, CONFIG_KEYS)}; correct it, or choose a name "
                f"of your own that does not begin with {_PREFIX!r}"
            )
            raise ConfigError(msg)
        if component and not known_key.component:
            msg = f"{place}: {key} is a setting of the whole topology; give it in the topology's configuration"
            raise ConfigError(msg)
        checked[key] = _typed(known_key, value, f"{place}: {key}")
    if TOPOLOGY_COLUMNS_COMPRESSION in checked:
        _check_compression(str(checked[TOPOLOGY_COLUMNS_COMPRESSION]), place)
    shedding_of(checked, place)
    checked = _without_acking(checked)
    if not component:
        _check_together(checked, place)
    return checked


def merged_config(topology: Mapping[str, object], component: Mapping[str, object]) -> dict[str, object]:
    """Return the configuration for a component's `initialize`: the topology's, overridden by the component's own."""
    return {**topology, **component}


def setting(config: Mapping[str, object], key: str) -> object:
    """Return the value of a known key, or the default of the key. `check_config` must have returned `config`.

    Raises:
        KeyError: when the key is unknown.
    """
    return config.get(key, CONFIG_KEYS[key].default)


def json_object(values: Mapping[str, object], place: str, depth: int = 0) -> dict[str, object]:
    """Return a dict as JSON, with tuples as lists; `depth` is the number of values around it.

    Raises:
        ConfigError: when a value is not JSON, contains itself or is nested too deeply (names the path of its key).
    """
    result: dict[str, object] = {}
    for key, value in values.items():
        if not is_a(key, str):
            msg = f"{place}: the key {short_text(key)} is a {type(key).__name__}, not a string; name keys by strings"
            raise ConfigError(msg)
        result[key] = json_value(value, f"{place}.{key}", depth + 1)
    return result


def json_value(value: object, place: str, depth: int = 0) -> object:
    """Return a value as JSON, with tuples as lists; `depth` is the number of values around it.

    Raises:
        ConfigError: when the value, or a value inside it, is not JSON, contains itself or is nested too deeply (names
            the path).
    """
    if depth > _DEEPEST:
        msg = (
            f"{place[:_LONGEST_PLACE]}…: it contains itself, or is nested in more than {_DEEPEST} values; "
            "make it flatter"
        )
        raise ConfigError(msg)
    if isinstance(value, Mapping):
        return json_object(value, place, depth)
    if isinstance(value, list | tuple):
        return [json_value(each, f"{place}[{position}]", depth + 1) for position, each in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _json_string(value, place)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            msg = f"{place}: {short_text(value)} does not fit in 64 bits; give it as a string"
            raise ConfigError(msg)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = f"{place}: {value} is not a JSON number; give a finite number or None"
            raise ConfigError(msg)
        return float(value)
    msg = (
        f"{place}: a value of type {type(value).__name__} is not JSON; give None, bool, int, float, str, or "
        "lists and dicts of these, and make the object in initialize"
    )
    raise ConfigError(msg)


def _json_string(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        msg = f"{place}: {short_text(value, 60)} has a lone surrogate and is not Unicode text; remove it"
        raise ConfigError(msg) from error
    return str(value)


def _typed(key: ConfigKey, value: object, place: str) -> object:
    match key.type:
        case ValueType.BOOL:
            truth = value if isinstance(value, bool) else _TRUTH.get(value.lower()) if isinstance(value, str) else None
            if truth is None:
                msg = f"{place}: {short_text(value, 60)} is not {key.type.value}"
                raise ConfigError(msg)
            return truth
        case ValueType.INT | ValueType.FLOAT:
            return _number(key, value, place)
        case ValueType.CHOICE:
            return _choice(key, value, place)
        case ValueType.STRING:
            if not isinstance(value, str):
                msg = f"{place}: {short_text(value, 60)} is not {key.type.value}; give one"
                raise ConfigError(msg)
            return _json_string(value, place)
        case ValueType.JSON:
            return json_value(value, place)


def _number(key: ConfigKey, value: object, place: str) -> object:
    convert = int if key.type is ValueType.INT else float
    number: int | float | None = None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = convert(value)
        except (ValueError, OverflowError):  # not a number, or an infinite one for an int
            number = None
    if number is None or not math.isfinite(number) or (isinstance(value, float) and number != value):
        msg = f"{place}: {short_text(value, 60)} is not {key.type.value}; give one in {key.unit}"
        raise ConfigError(msg)
    if key.off is not None and number == key.off:
        return json_value(number, place)
    if key.low is not None and number < key.low:
        or_off = "" if key.off is None else f"; {key.off} switches it off"
        msg = f"{place}: {short_text(number)} {key.unit} is below the minimum, {key.low:g} {key.unit}{or_off}"
        raise ConfigError(msg)
    if key.high is not None and number > key.high:
        msg = f"{place}: {short_text(number)} {key.unit} is above the greatest value, {key.high:g} {key.unit}"
        raise ConfigError(msg)
    return json_value(number, place)


def _choice(key: ConfigKey, value: object, place: str) -> str:
    if not isinstance(value, str) or value not in key.choices:
        close = nearest(value, key.choices)
        msg = f"{place}: {short_text(value, 60)}{close} is not a choice; give one of {known(key.choices)}"
        raise ConfigError(msg)
    return str(value)


def takes_checkpoints(config: Mapping[str, object]) -> bool:
    """Return whether a topology with this configuration saves its state at checkpoints.

    It does with EFFECTIVELY_ONCE, and with ATLEAST_ONCE when the configuration sets the interval of checkpoints.
    """
    mode = setting(config, TOPOLOGY_RELIABILITY_MODE)
    if mode == TopologyReliabilityMode.ATLEAST_ONCE:
        return TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS in config
    return mode == TopologyReliabilityMode.EFFECTIVELY_ONCE


def _check_together(checked: Mapping[str, object], place: str) -> None:
    mode = setting(checked, TOPOLOGY_RELIABILITY_MODE)
    at_least_once = mode == TopologyReliabilityMode.ATLEAST_ONCE
    drops = setting(checked, TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE)
    if drops and takes_checkpoints(checked):
        msg = (
            f"{place}: {TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE} drops tuples, and a topology with checkpoints "
            f"({TOPOLOGY_RELIABILITY_MODE} {mode}) restores one after each loss; switch one of them"
        )
        raise ConfigError(msg)
    if at_least_once and drops and not setting(checked, TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS):
        msg = (
            f"{place}: {TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE} with {TOPOLOGY_RELIABILITY_MODE} ATLEAST_ONCE needs "
            f"{TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS}: a tree that lost a tuple fails by its timeout; switch one of them"
        )
        raise ConfigError(msg)


def _check_compression(value: str, place: str) -> None:
    try:
        compression_of(value, "")
    except ConfigError as error:
        msg = f"{place}: {TOPOLOGY_COLUMNS_COMPRESSION}: {error}"
        raise ConfigError(msg) from error


def _without_acking(checked: dict[str, object]) -> dict[str, object]:
    acking = checked.pop(TOPOLOGY_ACKING, None)
    if acking is not None:
        mode = TopologyReliabilityMode.ATLEAST_ONCE if acking else TopologyReliabilityMode.ATMOST_ONCE
        checked.setdefault(TOPOLOGY_RELIABILITY_MODE, mode.value)
    return checked

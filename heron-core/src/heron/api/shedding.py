"""What ``topology.shed`` says: whether a spout sheds tuples in overload, which ones, and how many."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_SHED
from heron.author_text import short_text
from heron.errors import ConfigError, known, nearest

__all__ = ["Shedding", "SheddingPolicy", "shedding_of"]


class SheddingPolicy(enum.StrEnum):
    """Which tuples a spout sheds."""

    UNIFORM = "uniform"
    """Each tuple with the same probability."""
    BY_KEY = "by-key"
    """All tuples of some keys, so that the others are complete."""
    PRIORITY = "priority"
    """Those of the lowest priority."""
    NONE = "none"
    """No tuple."""


@dataclass(frozen=True, slots=True)
class Shedding:
    """The value of ``topology.shed``.

    Attributes:
        policy: which tuples are shed.
        rate_per_s: how many tuples all tasks of the spout keep, in tuples/s; None with another target.
        latency_s: how long a tuple may wait, in seconds; None with another target.
        key: the fields of the key, for `SheddingPolicy.BY_KEY`.
        priority: the field with the priority; "": `heron.api.Spout.shed_priority` gives it.
        stream: the only stream that sheds; "": all streams of the spout.
    """

    policy: SheddingPolicy
    rate_per_s: float | None = None
    latency_s: float | None = None
    key: tuple[str, ...] = ()
    priority: str = ""
    stream: str = ""

    @property
    def reason(self) -> str:
        """Why tuples are shed, as metrics name it."""
        return "rate" if self.rate_per_s is not None else "latency"


_KEYS = ("policy", "rate", "latency", "key", "priority", "stream")


def shedding_of(config: Mapping[str, object], place: str = "") -> Shedding | None:
    """Return what a configuration says about shedding; None if it lacks the key.

    Raises:
        ConfigError: when the value is not such an object; names `place`, the path and the remedy.
    """
    value = config.get(TOPOLOGY_SHED)
    if value is None:
        return None
    place = f"{place}: {TOPOLOGY_SHED}" if place else TOPOLOGY_SHED
    if not isinstance(value, Mapping):
        msg = f"{place}: {short_text(value, 60)} is not an object such as {{'policy': 'uniform', 'rate': 1000}}"
        raise ConfigError(msg)
    for key in value:
        if key not in _KEYS:
            msg = f"{place}.{short_text(key, 60)}: unknown key{nearest(str(key), _KEYS)}; known: {known(_KEYS)}"
            raise ConfigError(msg)
    policy = _policy(value.get("policy"), f"{place}.policy")
    found = Shedding(
        policy,
        _above_zero(value.get("rate"), f"{place}.rate", "tuples/s"),
        _above_zero(value.get("latency"), f"{place}.latency", "s"),
        _names(value.get("key"), f"{place}.key"),
        _name(value.get("priority"), f"{place}.priority"),
        _name(value.get("stream"), f"{place}.stream"),
    )
    _check(found, place)
    return found


def _check(found: Shedding, place: str) -> None:
    targets = (found.rate_per_s is not None) + (found.latency_s is not None)
    problem = ""
    if found.policy is SheddingPolicy.NONE:
        if targets:
            problem = "policy none has no target; remove rate and latency"
    elif targets != 1:
        problem = "give one target: rate (tuples/s) or latency (s)"
    if (found.policy is SheddingPolicy.BY_KEY) != bool(found.key):
        problem = "key belongs to the policy by-key, which needs the names of its fields"
    if found.priority and found.policy is not SheddingPolicy.PRIORITY:
        problem = "priority names a field for the policy priority; remove it, or choose that policy"
    if problem:
        msg = f"{place}: {problem}"
        raise ConfigError(msg)


def _policy(value: object, place: str) -> SheddingPolicy:
    choices = [each.value for each in SheddingPolicy]
    if not isinstance(value, str) or value not in choices:
        close = nearest(str(value), choices)
        msg = f"{place}: {short_text(value, 60)}{close} is not a policy; give one of {known(choices)}"
        raise ConfigError(msg)
    return SheddingPolicy(value)


def _above_zero(value: object, place: str, unit: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        msg = f"{place}: {short_text(value, 60)} is not a number of {unit} above 0"
        raise ConfigError(msg)
    return float(value)


def _names(value: object, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(_name(each, place) for each in ([value] if isinstance(value, str) else _listed(value, place)))


def _listed(value: object, place: str) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    msg = f"{place}: {short_text(value, 60)} is not the name of a field, or a list of names"
    raise ConfigError(msg)


def _name(value: object, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        msg = f"{place}: {short_text(value, 60)} is not a name"
        raise ConfigError(msg)
    return value

"""Key groups: a key belongs to one of G groups, and each group to one task of the consumer.

G is fixed for the life of a topology, so a change of parallelism moves whole groups, never single keys. Which task owns
a group is in the plan (`heron.planner.key_owners`). Every task has a group as long as the parallelism is at most G.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_intdigest

from heron.api.api_constants import TOPOLOGY_KEY_GROUPS
from heron.api.definition import TopologyDefinition
from heron.errors import TopologyError
from heron.planner.key_encoding import encode_key

__all__ = [
    "DEFAULT_KEY_GROUPS",
    "MAX_KEY_GROUPS",
    "key_group",
    "key_groups_of",
    "key_position",
]

_POSITION_SEED: Final = 0x6B657074  # the groups of the keys below a position are no fewer than those of all keys

DEFAULT_KEY_GROUPS: Final = 1024
MAX_KEY_GROUPS: Final = 65_536
"""Markers, state and plans grow with the number of groups; more groups than this do not balance better."""


def key_group(values: tuple[object, ...], groups: int) -> int:
    """The group, 0 … groups-1, of the key with these field values: XXH3-64 of its canonical bytes, modulo G.

    A call takes about 0.3 µs for one short string and 0.15 µs for each further value. Callers cache the groups of
    repeated keys.

    Raises:
        EmitError: when a value cannot be part of a key (see `encode_key`).
    """
    return xxh3_64_intdigest(encode_key(values)) % groups


def key_position(values: tuple[object, ...]) -> float:
    """The position of a key, from 0 to below 1: XXH3-64 of its canonical bytes with another seed than its group has.

    Raises:
        EmitError: when a value cannot be part of a key (see `encode_key`).
    """
    return (xxh3_64_intdigest(encode_key(values), _POSITION_SEED) >> 11) / 2**53  # the bits of a binary64


def key_groups_of(definition: TopologyDefinition) -> int:
    """The topology's number of key groups.

    Raises:
        TopologyError: when `topology.key.groups` is not an integer from 1 to `MAX_KEY_GROUPS`.
    """
    value = definition.config.get(TOPOLOGY_KEY_GROUPS, DEFAULT_KEY_GROUPS)
    if type(value) is not int or not 1 <= value <= MAX_KEY_GROUPS:
        msg = (
            f"topology {definition.name!r}: {TOPOLOGY_KEY_GROUPS} {value!r} is not an integer from 1 to "
            f"{MAX_KEY_GROUPS} key groups; leave it out for {DEFAULT_KEY_GROUPS}"
        )
        raise TopologyError(msg)
    return value

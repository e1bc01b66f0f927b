"""Moves key groups from busy tasks to idle ones. Pure.

The engine measures the tuples of each task, not of each key group: a count by group would cost time for every tuple.
So all groups of a task count the same. Tasks that are busy with many keys become even in one call. A task that one key
keeps busy gives groups away with or without that key: its tasks may stay uneven, whatever the number of calls.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import msgspec

from heron.errors import RemoteProtocolError
from heron.planner.key_owners import KeyOwners

__all__ = ["balanced_owners", "decode_owners", "encode_owners", "expected_rates"]

_EVEN = 0.05  # of the mean: differences of this size are noise of the measurement, and no reason to move state


def balanced_owners(owners: Sequence[int], rates: Mapping[int, float]) -> tuple[int, ...]:
    """The owners after the fewest groups have moved that make the expected rates of all tasks even.

    `rates` has the tuples per second of each task; a task without an entry has had none. Each task keeps one group at
    least. The result equals `owners` if no task exceeds the mean by more than 5 %. A task that cannot give more,
    because one group is too large, does not keep the others from being made even.
    """
    groups: dict[int, list[int]] = {}
    for group, task_id in enumerate(owners):
        groups.setdefault(task_id, []).append(group)
    weights = {task_id: rates.get(task_id, 0.0) / len(mine) for task_id, mine in groups.items()}
    loads = {task_id: rates.get(task_id, 0.0) for task_id in groups}
    after = list(owners)
    busiest = [(-load, task_id) for task_id, load in loads.items()]
    idlest = [(load, task_id) for task_id, load in loads.items()]
    heapq.heapify(busiest)
    heapq.heapify(idlest)
    rest_load, rest = sum(loads.values()), len(loads)
    while rest > 1 and loads[giver := busiest[0][1]] > (1 + _EVEN) * rest_load / rest:
        taker, weight = idlest[0][1], weights[giver]
        if len(groups[giver]) == 1 or loads[taker] + weight >= loads[giver]:
            heapq.heappop(busiest)
            rest_load, rest = rest_load - loads[giver], rest - 1
            continue
        after[groups[giver].pop()] = taker
        loads[giver] -= weight
        loads[taker] += weight
        heapq.heapreplace(busiest, (-loads[giver], giver))
        heapq.heapreplace(idlest, (loads[taker], taker))
    return tuple(after)


def expected_rates(owners: Sequence[int], after: Sequence[int], rates: Mapping[int, float]) -> dict[int, float]:
    """The rate of each task after the groups have moved, if all groups of a task are equally busy now."""
    counts = {task_id: owners.count(task_id) for task_id in set(owners)}
    expected = dict.fromkeys(sorted({*owners, *after}), 0.0)
    for before, now in zip(owners, after, strict=True):
        expected[now] += rates.get(before, 0.0) / counts[before]
    return expected


def encode_owners(owners: Mapping[str, KeyOwners]) -> bytes:
    """The owners of the key groups of components, as JSON."""
    return msgspec.json.encode(owners)


def decode_owners(document: bytes) -> dict[str, KeyOwners]:
    """Raises RemoteProtocolError when the document has another form."""
    try:
        return msgspec.json.decode(document, type=dict[str, KeyOwners])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"the owners of key groups in a request do not decode: {error}"
        raise RemoteProtocolError(msg) from error

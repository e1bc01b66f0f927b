"""A checkpoint of much keyed state stops its task only briefly, and a state backend needs little memory for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.api import ValueState
from heron.clock import SystemClock, monotonic_s
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.state_payload import SavedEntries, encode_group
from heron.planner.key_group import DEFAULT_KEY_GROUPS, key_group
from heron_state_lmdb import LmdbStateBackend

VALUE_BYTES = 1000
SLICE_S = 0.005  # as tasks encode
CALLS = 20  # of the component between two slices
PAUSE_S = 0.050
SMALL = 20_000_000
LARGE = 1_000_000_000
SIZES = [SMALL, pytest.param(LARGE, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
MEMORY_SHARE = 0.2


def anonymous_bytes() -> int:
    """Return the resident memory of this process that is no cache of files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def payloads(entries: int) -> Iterator[tuple[int, bytes]]:
    """Yield the groups of a checkpoint with this number of entries."""
    keys: dict[int, list[int]] = {}
    for key in range(entries):
        keys.setdefault(key_group((key,), DEFAULT_KEY_GROUPS), []).append(key)
    for group in sorted(keys):
        held = {key: random.randbytes(VALUE_BYTES) for key in keys[group]}
        yield group, encode_group("test", {"values": SavedEntries("value", 0, held)})


def longest_pauses_s(keyed: KeyedStateStore, values: ValueState[int, bytes], entries: int) -> dict[str, float]:
    """Take a snapshot of all groups while the component writes; return the longest time of each step, in seconds."""
    longest = dict.fromkeys(("begin", "slice", "call", "settle"), 0.0)

    def measure(step: str, start_s: float) -> None:
        longest[step] = max(longest[step], monotonic_s() - start_s)

    start_s = monotonic_s()
    snapshot = keyed.snapshot()
    measure("begin", start_s)
    found = 0
    while not snapshot.done:
        start_s = monotonic_s()
        found += len(snapshot.next(SLICE_S))
        measure("slice", start_s)
        for _ in range(CALLS):
            start_s = monotonic_s()
            values.put(random.randrange(entries), b"new")
            measure("call", start_s)
        start_s = monotonic_s()
        keyed.flush_if_many()
        measure("settle", start_s)
    assert found == DEFAULT_KEY_GROUPS
    return longest


@pytest.mark.parametrize("backend", ["lmdb", "memory"])  # memory that a process frees would hide growth
@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_checkpoint_stops_the_task_briefly(tmp_path: Path, size_bytes: int, backend: str) -> None:
    """At most 50 ms, also with 1 GB; then the state is as before, with what was written meanwhile."""
    before_bytes, entries = anonymous_bytes(), size_bytes // VALUE_BYTES
    store = LmdbStateBackend.open({}).create(tmp_path) if backend == "lmdb" else None
    keyed = KeyedStateStore("large", 1, DEFAULT_KEY_GROUPS, SystemClock(), store=store)
    for group, payload in payloads(entries):
        keyed.load(group, payload)
    values = keyed.state("values", ValueState[int, bytes])
    keyed.mark_all_changed()
    pauses_s = longest_pauses_s(keyed, values, entries)
    grown_bytes = anonymous_bytes() - before_bytes
    shown = {step: f"{pause_s * 1000:.1f} ms" for step, pause_s in pauses_s.items()}
    print(f"{backend}, {size_bytes / 1e9:g} GB: longest pauses {shown}, memory {grown_bytes / 1e6:.0f} MB")  # noqa: T201
    assert len(values) == entries
    if size_bytes == LARGE:
        assert max(pauses_s.values()) <= PAUSE_S
        assert backend == "memory" or grown_bytes <= MEMORY_SHARE * size_bytes
    keyed.close()

"""What a second process writes into a view, and what a reader may then see at any instant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from heron.spi.store import Batch, Reading, ViewStore

__all__ = ["KEYS", "SPAN_US", "WRITERS", "seen", "total"]

SPAN_US = 1_000_000
"""The length of the spans, in microseconds."""

KEYS = tuple(b"key-%d" % number for number in range(12))
"""The keys that each step writes."""

_LARGE_BYTES = 100_000


def seen(store: ViewStore, view: str, keys: Iterable[bytes]) -> Reading:
    """Return what `ViewStore.read` does, with dicts and lists, so that readings can be compared."""
    found = store.read(view, keys)
    live = {key: list(values) for key, values in found.live.items()}
    return Reading(found.until_us, dict(found.history), live, found.live_at_us)


def total(reading: Reading) -> int:
    """Return the number of spans that are counted, which must be the same for every key.

    Raises:
        AssertionError: when the reading is not one of an instant between two steps of ``steps``.
    """
    spans = (reading.until_us or 0) // SPAN_US
    if reading.until_us is not None:
        assert dict(reading.history) == dict.fromkeys(KEYS, b"%d" % spans), "values of another batch"
    counted = {key: len(reading.live.get(key, ())) for key in KEYS}
    assert len(set(counted.values())) == 1, f"keys of different instants: {counted}"
    return spans + counted[KEYS[0]]


def _step(store: ViewStore, view: str, count: int) -> None:
    """Count a span in each step; then a batch takes over all spans before it."""
    for number in range(count):
        start_us = number * SPAN_US
        store.stage(view, 0, number + 1, {(start_us, key): b"1" for key in KEYS})
        store.publish(view, 0, number + 1, start_us)
        batch = Batch(start_us, "run")
        for part in (0, 1):
            store.stage_batch(view, batch, part, dict.fromkeys(KEYS[part::2], b"%d" % number))
            store.publish_batch(view, batch, part, 2)


def _write_as(writer: int, store: ViewStore, view: str, count: int) -> None:
    """Show a number at a time, in keys of this writer and in one span for all writers."""
    for number in range(1, count + 1):
        store.stage(view, writer, number, {(0, b"%d-%s" % (writer, key)): b"%d" % number for key in KEYS})
        store.publish(view, writer, number, number)


def _stage_on(store: ViewStore, view: str, version: int) -> None:
    """Stage large values with ascending versions until the process is killed."""
    for number in itertools.count(version):
        store.stage(view, 0, number, {(0, key): _large(number) for key in KEYS})


def _publish_on(store: ViewStore, view: str, version: int) -> None:
    """Stage and show large values until the process is killed."""
    for number in itertools.count(version):
        store.stage(view, 0, number, {(0, key): _large(number) for key in KEYS})
        store.publish(view, 0, number, number)


def _batch_on(store: ViewStore, view: str, first: int) -> None:
    """Show batches of large values until the process is killed."""
    for number in itertools.count(first):
        batch = Batch(number * SPAN_US, "run")
        store.stage_batch(view, batch, 0, dict.fromkeys(KEYS, _large(number)))
        store.publish_batch(view, batch, 0, 1)


def _large(number: int) -> bytes:
    return b"%08d" % number * (_LARGE_BYTES // 8)


WRITERS: Mapping[str, Callable[[ViewStore, str, int], None]] = {
    "steps": _step,
    "writer-0": partial(_write_as, 0),
    "writer-1": partial(_write_as, 1),
    "stage-on": _stage_on,
    "publish-on": _publish_on,
    "batch-on": _batch_on,
}
"""The actions of the second process, by name; the last argument is a count of steps, or the first version."""

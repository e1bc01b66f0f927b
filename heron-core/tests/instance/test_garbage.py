"""Python's cycle collector: tuples cause no collections, and its collections are counted."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import pytest

from heron.api.definition import StreamDefinition
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.garbage import THRESHOLDS, GarbagePauses
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_routes import ShuffleSplitter, StreamRoutes
from heron.instance.output.tracked_stream import RootStream
from heron.spi.metricsink import Histogram
from parts import stream_origin

Collected = Callable[..., AbstractContextManager[list[int]]]

TUPLES = 100_000
ROWS = 1000


class Nowhere:
    """Takes every segment and keeps none."""

    def put(self, segments: Sequence[bytes]) -> None:
        """`heron.instance.output.emitter.SegmentSink`."""

    def has_room(self) -> bool:
        """Always."""
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        """Never."""
        return 0.0

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Never calls it."""


def emits_of(tracked: bool, routes: StreamRoutes) -> SpoutEmitter:
    """The emits of a spout; tracked ones are settled regularly."""
    origin, pending = stream_origin(batch_rows=ROWS, batch_bytes=500_000), PendingRoots(lambda: 0.0)
    make = partial(RootStream, pending=pending) if tracked else OutStream
    emitter = SpoutEmitter(origin, Nowhere())
    emitter.set_streams([make(0, StreamDefinition("default", ("word", "number")), routes, origin)])
    emit = emitter.specialised()
    assert emit is not None
    for number in range(TUPLES):
        emit([f"word {number % 500}", number], (number,))
        if number % (10 * ROWS) == 0:
            pending.settle_all()
    emitter.flush()
    return emitter


WHOLE = StreamRoutes(whole=(2,))
WORK = {
    "emits": partial(emits_of, False, WHOLE),
    "emits to eight tasks": partial(emits_of, False, StreamRoutes(splitters=(ShuffleSplitter(list(range(2, 10)), 0),))),
    "emits of roots": partial(emits_of, True, WHOLE),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_100_000_emits_cause_no_collection_and_leave_no_cycle(collected: Collected, work: Callable[[], object]) -> None:
    """The objects of a batch are freed with it. With the default thresholds there would be a hundred collections."""
    work()  # loads modules that are loaded at their first use
    with collected() as generations:
        emitter = work()
        assert generations == []
        assert gc.collect() < TUPLES // ROWS
        assert emitter is not None  # keeps it alive until here: its own cycles do not count


def test_cycles_of_the_author_are_collected_and_the_pauses_counted(collected: Collected) -> None:
    """Collections are rare, not switched off."""
    pauses = GarbagePauses()
    with collected() as generations:
        pauses.watch()
        for number in range(TUPLES):
            circle: list[object] = [number]
            circle.append(circle)
        pauses.close()
    assert TUPLES // THRESHOLDS[0] - 1 <= len(generations) <= TUPLES // THRESHOLDS[0] + 1
    counts, pause = counted(pauses)
    assert sum(counts.values()) == len(generations) == sum(pause.counts)
    assert pause.total > 0


def counted(pauses: GarbagePauses) -> tuple[dict[str, int], Histogram]:
    """Collections by generation, and the histogram of their durations."""
    *counts, times = pauses.metrics()
    assert isinstance(times.value, Histogram)
    found = {each.labels["generation"]: each.value for each in counts if isinstance(each.value, int)}
    return found, times.value


def test_a_pause_lasts_from_start_to_stop() -> None:
    """The test controls the clock: 3 s, then 0.25 s."""
    readings = iter([10.0, 13.0, 20.0, 20.25])
    pauses = GarbagePauses(lambda: next(readings))
    for generation in (2, 0):
        for phase in ("start", "stop"):
            pauses._note(phase, {"generation": generation, "collected": 0, "uncollectable": 0})
    counts, pause = counted(pauses)
    assert counts == {"0": 1, "1": 0, "2": 1}
    assert pause.total == pytest.approx(3.25)
    assert [bound for bound, count in zip(pause.bounds, pause.counts, strict=False) if count] == [0.5, 5.0]


def test_the_metrics_have_the_names_of_the_wire_document() -> None:
    """Other tools rely on WIRE.md."""
    found = {(each.name, each.unit) for each in GarbagePauses().metrics()}
    assert found == {("gc-collection-count", "collections"), ("gc-pause-s", "s"), ("gc-collection-time", "s")}

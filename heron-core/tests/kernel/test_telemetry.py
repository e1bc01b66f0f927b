"""Events of a process: ids, causes and the limit of kept events."""

from __future__ import annotations

from heron.kernel.telemetry import EventLog
from heron.spi.metricsink import Source
from heron_testing.fake_clock import FakeClock

SOURCE = Source("wc", 2, "executor", 65536)


def test_the_cause_of_an_event_is_the_last_event_of_its_subject(fake_clock: FakeClock) -> None:
    """A reader can follow causes backwards: a restart, the death before it, the start before that."""
    log = EventLog(SOURCE, fake_clock)
    started = log.note("process-started", "word-1", restarts="0")
    log.note("process-started", "count-2")
    died = log.note("process-died", "word-1")
    assert (started.cause, died.cause) == ("", started.id)
    assert started.attributes == {"restarts": "0"}
    assert started.at_s == fake_clock.wall_s()


def test_ids_differ_among_processes_and_incarnations(fake_clock: FakeClock) -> None:
    """Sinks merge the events of many processes, so an id must be unique among all of them."""
    ids = {
        EventLog(Source("wc", container, "executor", incarnation), fake_clock).note("x", "y").id
        for container in (0, 1)
        for incarnation in (65536, 131072)
    }
    assert len(ids) == 4


def test_events_are_taken_once_and_the_newest_are_kept(fake_clock: FakeClock) -> None:
    """Memory stays bounded if no record is sent."""
    log = EventLog(SOURCE, fake_clock)
    for number in range(1200):
        log.note(f"event-{number}", "x")
    taken = log.take()
    assert (len(taken), taken[-1].name) == (1000, "event-1199")
    assert log.take() == ()

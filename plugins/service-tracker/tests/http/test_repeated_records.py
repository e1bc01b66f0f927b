"""Log records that clients cause."""

from __future__ import annotations

import logging

import pytest

from heron_service_tracker.http.repeated_records import once_per_minute
from heron_testing.fake_clock import FakeClock


def test_a_kind_is_logged_once_a_minute_with_the_number_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A line for each request of a stranger fills a disk, and hides the other kinds."""
    clock, log = FakeClock(), logging.getLogger("heron_service_tracker.tests")
    with once_per_minute((log.name,), clock):
        for number in range(1_000):
            log.warning("refused %d", number)
        log.error("another %s", "kind")
        clock.advance(59.0)
        log.warning("refused %d", 1_000)
        clock.advance(1.0)
        log.warning("refused %d", 1_001)
        clock.advance(60.0)
        log.warning("refused %d", 1_002)
    log.warning("refused %d", 1_003)
    assert caplog.messages == [
        "refused 0",
        "another kind",
        "refused 1001 (1000 more since the last such line)",
        "refused 1002",
        "refused 1003",
    ]

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


def test_connections_are_no_kinds(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio writes the address of a connection into a message: each would be a line, and kept for ever."""
    clock, log = FakeClock(), logging.getLogger("heron_service_tracker.tests")
    with once_per_minute((log.name,), clock):
        for number in range(0x7F3A, 0x8000):
            for message in (
                f"Fatal error: protocol.data_received() call failed.\nprotocol: <P object at {number:#x}>",
                f"Exception in callback <method of P at {number:#x}>()\nhandle: <Handle {number}>",
            ):
                log.error(message)
    assert len(caplog.messages) == 2


def test_kinds_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """What a stranger chooses must not be kept; after a minute there is place for other kinds."""
    clock, log = FakeClock(), logging.getLogger("heron_service_tracker.tests")
    letters = [first + second for first in "abcdefghijklmnopqrst" for second in "abcdefghij"]
    with once_per_minute((log.name,), clock):
        for each in letters:
            log.warning(each)
        assert len(caplog.messages) == 101
        log.error("another level")
        clock.advance(60.0)
        log.warning("later")
        log.warning("later")
    assert caplog.messages[101:] == ["another level", "later"]

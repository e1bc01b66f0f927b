"""Violations are counted, but cost no disk and no memory, however many come."""

from __future__ import annotations

import logging

import pytest

from heron.errors import PackageError, RemoteProtocolError, Violation
from heron.ipc.violations import Violations, violation_of

LOG = logging.getLogger("test-violations")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_each_link_and_kind_is_counted() -> None:
    """`heron metrics` shows what is wrong, and on which link."""
    found = Violations(LOG)
    found.note("from-peer", Violation.SIZE, "too large")
    found.note("from-peer", Violation.SIZE, "too large")
    found.count("from-peer", Violation.SESSION)
    assert {(each.labels["link"], each.labels["kind"]): each.value for each in found.metrics()} == {
        ("from-peer", "size"): 2,
        ("from-peer", "session"): 1,
    }
    assert found.total() == 3


def test_the_log_has_the_first_of_each_minute_and_says_how_many_are_missing(caplog: pytest.LogCaptureFixture) -> None:
    """A peer that sends a thousand bad frames a second must not fill the disk."""
    clock = Clock()
    found = Violations(LOG, clock)
    for number in range(1000):
        found.note("metrics", Violation.CONTENT, f"bad frame {number}")
    assert [each.getMessage() for each in caplog.records] == [f"bad frame {number}" for number in range(20)]
    clock.now_s += 60.0
    found.note("metrics", Violation.CONTENT, "another")
    assert caplog.records[-1].getMessage() == "another (980 earlier violations are only counted)"


def test_a_connection_that_breaks_the_rules_again_and_again_gets_no_more_answers() -> None:
    """It may never read them, and they would wait in memory."""
    found = Violations(LOG)
    assert sum(found.may_answer(b"rogue") for _ in range(1000)) == 16
    assert found.may_answer(b"other")


def test_the_answers_to_many_connections_take_bounded_memory() -> None:
    """The oldest connections are forgotten."""
    found = Violations(LOG)
    for number in range(5000):
        assert found.may_answer(str(number).encode())
    assert len(found._answers) == 1024


def test_the_kind_of_an_error() -> None:
    """Errors about the contents of a message have no kind of their own."""
    assert violation_of(RemoteProtocolError("no", Violation.KIND)) is Violation.KIND
    assert violation_of(RemoteProtocolError("no")) is violation_of(PackageError("no")) is Violation.CONTENT

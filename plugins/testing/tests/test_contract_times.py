"""Limits of time in contracts hold on a busy machine, and still find a driver that waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron_testing.contracts import driver
from heron_testing.contracts.driver import in_time
from heron_testing.fake_clock import FakeClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeClock:
    """The clock of `in_time`; the file that tells the pressure is `pressure` in the folder of the test."""
    clock = FakeClock()
    monkeypatch.setattr(driver, "monotonic_s", clock.monotonic_s)
    monkeypatch.setattr(driver, "_PRESSURE", tmp_path / "pressure")
    return clock


def _take(clock: FakeClock, folder: Path, seconds: float, busy_s: float) -> None:
    """Half a second is the limit; some processes wait for a processor for `busy_s` of the time."""
    pressure = folder / "pressure"
    pressure.write_text("some avg10=1.00 avg60=0.00 avg300=0.00 total=5000000\nfull total=0\n")
    with in_time(0.5):
        clock.advance(seconds)
        pressure.write_text(f"some avg10=9.00 avg60=0.00 avg300=0.00 total={5 + busy_s:g}000000\nfull total=0\n")


def test_a_driver_that_waits_is_found(clock: FakeClock, tmp_path: Path) -> None:
    """A second of the three is that of a busy machine, so two count; the limit with its rest is 1.75."""
    with pytest.raises(AssertionError, match=r"took 2\.0 s, the limit of the contract is 0\.5 s"):
        _take(clock, tmp_path, 3.0, 1)


def test_the_wait_for_a_processor_does_not_count(clock: FakeClock, tmp_path: Path) -> None:
    """Two of three seconds."""
    _take(clock, tmp_path, 3.0, 2)


def test_without_a_file_of_pressure_all_time_counts(clock: FakeClock) -> None:
    """Other systems do not tell it."""
    timed = in_time(0.5)
    timed.__enter__()
    clock.advance(3.0)
    with pytest.raises(AssertionError, match=r"took 3\.0 s"):
        timed.__exit__(None, None, None)

"""The back-off: the last wait and the last run decide the next wait."""

from __future__ import annotations

import pytest

from heron_scheduler_kit.supervision import BackoffLimits, next_wait_s

_LIMITS = BackoffLimits(first_s=0.1, longest_s=10.0, stable_s=30.0)


@pytest.mark.parametrize(
    ("last_wait_s", "ran_s", "wait_s"),
    [
        (0.0, 0.0, 0.1),
        (0.1, 0.0, 0.2),
        (0.2, 29.9, 0.4),
        (6.4, 1.0, 10.0),
        (10.0, 1.0, 10.0),
        (10.0, 30.0, 0.1),
    ],
)
def test_waits_double_up_to_the_longest_and_restart_after_a_stable_run(
    last_wait_s: float, ran_s: float, wait_s: float
) -> None:
    """A crash at start must not spin, and a crash after a day must not cost ten seconds."""
    assert next_wait_s(_LIMITS, last_wait_s, ran_s) == pytest.approx(wait_s)

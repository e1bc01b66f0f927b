"""Ctrl-C while the author's code runs in the process of the command."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from heron.clock import monotonic_s
from heron_cli.interrupts import repeated_interrupts


def drop_the_first() -> None:
    with repeated_interrupts():
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(10)
        threading.Event().wait(10)


def test_a_dropped_ctrl_c_is_repeated_only_within_the_block() -> None:
    """Python drops exceptions in callbacks of imports and finalizers, so the command would not end."""
    before = signal.getsignal(signal.SIGINT)
    start_s = monotonic_s()
    with pytest.raises(KeyboardInterrupt):
        drop_the_first()
    assert monotonic_s() - start_s < 9
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGINT) is before

"""Rules of steps on Spark of this machine: the records, letters, commands and counts of Heron."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checked_rules import check_kept, check_stopped
from spark_run import BATCH, RUN_S, STREAMING

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.usefixtures("java")]

ON_SPARK = pytest.mark.parametrize("profile", [BATCH, STREAMING], ids=["batch", "streaming"])


@ON_SPARK
def test_a_step_keeps_what_fails_among_the_dead_letters(sandbox: Sandbox, profile: tuple[str, ...]) -> None:
    """The task of the driver writes the letters of all workers."""
    run = sandbox.start("step_rules.py", *profile, args=("--rule", "dead_letter"))
    run.finished(RUN_S)
    check_kept(sandbox, run)


@ON_SPARK
def test_a_step_stops_the_run(sandbox: Sandbox, profile: tuple[str, ...]) -> None:
    """With its own error, although Spark passes only a text."""
    run = sandbox.start("step_rules.py", *profile, args=("--rule", "stop"))
    run.wait(RUN_S)
    check_stopped(run)

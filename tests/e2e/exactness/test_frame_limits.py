"""Tuples of very different sizes in one flush: all arrive, within and between containers, and no session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron_streamlet import Config

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

TUPLES = 12


def check_sessions(sandbox: Sandbox) -> None:
    """No frame was refused: each session began once."""
    log = sandbox.log_text("*.log")
    assert "broke the protocol" not in log
    assert "ended its session" not in log
    assert "registered, incarnation" in log


@pytest.mark.parametrize(("mode", "containers"), [("ATMOST_ONCE", 2), ("ATLEAST_ONCE", 1), ("EFFECTIVELY_ONCE", 2)])
def test_a_topology_keeps_every_tuple(sandbox: Sandbox, mode: str, containers: int) -> None:
    """60 MB to one task in one flush: a frame has at most 33.5 MiB."""
    run = sandbox.start("uneven_sizes.py", args=("--mode", mode, "--containers", str(containers)))
    report = run.finished()
    ((rows),) = run.results("sizes").values()
    assert rows == [[number, (1, 10_000_000)[number % 2]] for number in range(TUPLES)]
    assert (report.components["uneven"].emitted, report.components["uneven"].failed) == (TUPLES, 0)
    check_sessions(sandbox)


@pytest.mark.parametrize(
    ("delivery", "containers"), [(Config.ATLEAST_ONCE, 2), (Config.EFFECTIVELY_ONCE, 2), (Config.ATMOST_ONCE, 1)]
)
def test_a_pipeline_keeps_every_element(sandbox: Sandbox, delivery: int, containers: int) -> None:
    """Its repartition sends half of the elements to each of two tasks."""
    run = sandbox.start("uneven_sizes.py", args=("--delivery", str(delivery), "--containers", str(containers)))
    run.finished()
    sizes = sorted(int(line) for each in (run.out / "sizes").glob("*.txt") for line in each.read_text().splitlines())
    assert sizes == [1] * (TUPLES // 2) + [6_000_000] * (TUPLES // 2)
    check_sessions(sandbox)

"""A slow bolt slows its spout: memory stays bounded, the culprit has a name, and nothing is lost (D4, D6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from conftest import Sandbox

TUPLES = 50_000  # 200 MiB of text
MIB = 1024 * 1024
LIMIT_BYTES = 110 * MIB  # an idle process and its buffers, with room; far from what the spout would send


def test_a_bolt_that_blocks_holds_its_spout_back_and_is_not_restarted(sandbox: Sandbox) -> None:
    """Slow is not dead: while it blocks, every queue is full and no process grows; afterwards everything arrives."""
    run = sandbox.start("slow.py")
    run.printed("back pressure by slow/")
    watched = [*run.processes("stmgr"), *run.processes("instance")]
    assert len(watched) == 4
    largest = dict.fromkeys((each.pid for each in watched), 0)

    def ended() -> bool:
        for each in watched:
            try:
                largest[each.pid] = max(largest[each.pid], each.memory_info().rss)
            except psutil.Error:  # it has left
                continue
        return run.process.poll() is not None

    run.until(ended, "the end")
    report = run.finished()

    received: object = list(run.results("slow").values())
    assert received == [[TUPLES, sum(range(TUPLES))]]
    assert (report.components["large"].emitted, report.components["slow"].executed) == (TUPLES, TUPLES)
    assert max(largest.values()) < LIMIT_BYTES, {pid: f"{size / MIB:.0f} MiB" for pid, size in largest.items()}
    assert len((run.out / "pids").read_text(encoding="utf-8").splitlines()) == 1, "it was started again"
    assert "died" not in run.stderr

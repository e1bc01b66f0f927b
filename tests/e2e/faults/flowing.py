"""Checks of a run of ``steady.py``: arriving tuples and the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun

__all__ = ["complete", "flows", "seen"]


def seen(run: HeronRun) -> tuple[str, int]:
    """Return the process that counts, and the number of tuples that have arrived there."""
    try:
        pid, count = (run.out / "progress").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return "", 0
    return pid, int(count)


def flows(run: HeronRun, what: str) -> None:
    """Wait until more tuples arrive, or the first ones at another process."""
    before = seen(run)

    def more() -> bool:
        pid, count = seen(run)
        return count > before[1] or (count > 0 and pid != before[0])

    run.until(more, f"tuples {what}")


def complete(run: HeronRun) -> None:
    """End the stream and check, at most once, that every tuple arrived unless a process on its path was replaced."""
    (run.out / "stop").touch()
    counts = run.finished().components
    assert counts["count"].executed == counts["numbers"].emitted > 0

"""What tests ask of a run of ``steady.py``: that tuples go on arriving, and what its status says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

__all__ = ["complete", "flows", "seen", "status", "write_profile"]


def write_profile(sandbox: Sandbox, name: str, text: str) -> tuple[str, str]:
    """Puts a profile where commands of this world find it; returns the options that choose it."""
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return "--profile", name


def seen(run: HeronRun) -> tuple[str, int]:
    """Which process counts, and how many tuples have arrived there."""
    try:
        pid, count = (run.out / "progress").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return "", 0
    return pid, int(count)


def flows(run: HeronRun, what: str) -> None:
    """Waits until more tuples arrive, or the first ones at another process."""
    before = seen(run)

    def more() -> bool:
        pid, count = seen(run)
        return count > before[1] or (count > 0 and pid != before[0])

    run.until(more, f"tuples {what}", 30.0)


def status(sandbox: Sandbox, *options: str) -> dict[str, Any]:
    """What `heron status` says."""
    document: dict[str, Any] = json.loads(sandbox.say("status", "steady", *options, "--json"))["status"]
    return document


def complete(run: HeronRun) -> None:
    """Ends the stream, at most once: every tuple has arrived if no process on its way was replaced."""
    (run.out / "stop").touch()
    counts = run.finished().components
    assert counts["count"].executed == counts["numbers"].emitted > 0

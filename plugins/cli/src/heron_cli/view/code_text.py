"""New code for a running topology, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.ipc.documents.status import CodeStatus
    from heron_cli.launch.code.code_update import CodeUpdate

__all__ = ["code_as_json", "code_lines", "phase_lines"]


def code_lines(update: CodeUpdate) -> Iterator[str]:
    """Yield which components have other code, what else differs, and how long the change took."""
    yield from update.notes
    if not update.tasks:
        yield f"{update.topology}: no component has other code"
        return
    tasks = f"{len(update.tasks)} task{'s' if len(update.tasks) > 1 else ''}"
    if update.took_s is None:
        first = f", {len(update.canaries)} of them first" if update.canaries else ""
        yield f"{update.topology}: other code in {', '.join(update.changed)}: {tasks} would change{first}"
    else:
        run = f"{tasks} run{'s' if len(update.tasks) == 1 else ''}"
        yield f"{update.topology}: {', '.join(update.changed)}: {run} the new code after {update.took_s:.1f} s"


def phase_lines(status: CodeStatus, compared: Sequence[str]) -> Iterator[str]:
    """Yield the phase of a change, or what was compared in it."""
    yield from (f"  {each}" for each in compared)
    if not compared and status.phase not in {"complete", "returned"}:
        tasks = ", ".join(map(str, status.tasks))
        yield f"{status.phase}: {status.reason}" if status.reason else f"{status.phase}: tasks {tasks}"


def code_as_json(update: CodeUpdate) -> dict[str, object]:
    """Return the document of ``heron update --code … --json``; `took_s` is null for a dry run."""
    return asdict(update)

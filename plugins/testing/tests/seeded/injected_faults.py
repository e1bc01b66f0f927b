"""Faults that are put into a copy of the engine's protocol code, to prove that the simulation finds such faults.

Each is a change of one place. The place must occur once in its file, so a change of the engine shows here at once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = ["INJECTED_FAULTS", "InjectedFault", "broken_engine"]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault in a file of `heron`; `found_at` is the first seed that finds it, from 1, or 0 if none is known."""

    name: str
    file: str
    before: str
    after: str
    found_at: int = 0
    with_state: bool = True


INJECTED_FAULTS = (
    InjectedFault(
        "a task reports a checkpoint before its state is written",
        "instance/state/checkpoint_saver.py",
        "            if job.payloads:\n",
        '            self._outcomes.append((job, ""))\n            self._on_outcome()\n            if job.payloads:\n',
    ),
    InjectedFault(
        "a leader writes the plan without the version that it has read",
        "tmanager/state/plan_record.py",
        "encode_plan(plan), expected=self._version\n",
        "encode_plan(plan), expected=None\n",
        found_at=9,
    ),
    InjectedFault(
        "a task processes data from before the last restore",
        "instance/input/channel_alignment.py",
        "        if sent_under < since:\n            return Verdict.DROP\n",
        "",
        found_at=1,
    ),
    InjectedFault(
        "a bolt saves and forwards the marker of a checkpoint when the first one has arrived",
        "instance/input/channel_alignment.py",
        "return number if number and all(",
        "return number if number and any(",
        found_at=9,
    ),
    InjectedFault(
        "a stream manager does not notice the frames that a broken connection has lost",
        "stmgr/peer_hub.py",
        "self._context.counters.lost_frames += max(0, missing)",
        "self._context.counters.lost_frames += min(0, max(0, missing))",
    ),
    InjectedFault(
        "a stream manager does not repeat END to a task that has restarted",
        "stmgr/router.py",
        "            for marker in self.markers.of(task_id):\n                self._put(task_id, marker)\n",
        "            pass\n",
        with_state=False,
        found_at=20,
    ),
    InjectedFault(
        "the death of a task is not reported as a loss",
        "stmgr/stream_manager.py",
        "        self._peers.send_loss(task_id)\n        self._report_loss(task_id)\n",
        "",
        found_at=1,
    ),
    InjectedFault(
        "a restored task discards what belongs to its checkpoint",
        "instance/state/task_checkpoints.py",
        'component.pre_restore(str(source.number) if source else "")',
        'component.pre_restore("")',
    ),
    InjectedFault(
        "a checkpoint is complete although one task has not saved it",
        "tmanager/leader/checkpoint_progress.py",
        "        if not missing and not pending.is_storing:\n",
        "        if len(missing) <= 1 and not pending.is_storing:\n",
        found_at=1,
    ),
)


def broken_engine(folder: Path, source: Path, fault: InjectedFault) -> Path:
    """A copy of the package at `source` with a fault; returns the folder for `PYTHONPATH`."""
    shutil.copytree(source, folder / "heron", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "heron" / fault.file
    text = path.read_text(encoding="utf-8")
    found = text.count(fault.before)
    if found != 1:
        message = f"{fault.file}: the place of the fault {fault.name!r} occurs {found} times; change injected_faults.py"
        raise AssertionError(message)
    path.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
    return folder

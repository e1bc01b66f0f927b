"""Faults that are put into a copy of the engine's protocol code, to prove that the simulation finds such faults.

Each is a change of one place. The place must occur once in its file, so a change of the engine shows here at once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = ["INJECTED_FAULTS", "InjectedFault", "broken_engine", "broken_text"]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault in a file of `heron`; `found_at` is a seed that finds it, or 0 if the seeds up to `tried` do not."""

    name: str
    file: str
    before: str
    after: str
    with_state: bool = True
    found_at: int = 0
    tried: int = 0


INJECTED_FAULTS = (
    InjectedFault(
        "a checkpoint is complete before its manifest is stored",
        "tmanager/state/manifest_writer.py",
        '        error = ""\n        try:\n            self._archive.save_manifest',
        '        error = ""\n'
        "        self._outcomes.append((manifest.number, error))\n"
        "        self._wakeup.wake()\n"
        "        try:\n"
        "            self._archive.save_manifest",
        found_at=1,
    ),
    InjectedFault(
        "a checkpoint is complete although one task has not saved it",
        "tmanager/leader/checkpoint_progress.py",
        "        if not missing and not pending.is_storing:\n",
        "        if len(missing) <= 1 and not pending.is_storing:\n",
        found_at=1,
    ),
    InjectedFault(
        "a topology ends without a checkpoint after the end of its tasks",
        "tmanager/leader/checkpoint_progress.py",
        "        return self._complete_after_end and self.is_committed(",
        "        return self.is_committed(",
        found_at=1,
    ),
    InjectedFault(
        "a bolt ends when the first task upstream has ended",
        "instance/input/marker_counter.py",
        "return self._upstream <= self._ended",
        "return bool(self._upstream & self._ended)",
        with_state=False,
        found_at=1,
    ),
    InjectedFault(
        "a restored task drops what was sent since the restore",
        "instance/input/channel_alignment.py",
        "        if sent_under < since:\n",
        "        if sent_under <= since:\n",
        found_at=2,
    ),
    InjectedFault(
        "a task processes data from before the last restore",
        "instance/input/channel_alignment.py",
        "        if sent_under < since:\n            return Verdict.DROP\n",
        "",
        found_at=2,
    ),
    InjectedFault(
        "the death of a task is not reported as a loss",
        "stmgr/stream_manager.py",
        "        self._peers.send_loss(task_id)\n        self._report_loss(task_id)\n",
        "",
        found_at=2,
    ),
    InjectedFault(
        "a restored spout stays ended",
        "instance/spout_runner.py",
        "        self._spout_emitter.ending = False\n",
        "",
        found_at=2,
    ),
    InjectedFault(
        "a restored task that had ended counts as ended",
        "tmanager/leader/task_table.py",
        "entry.state in (TaskState.RUNNING, TaskState.ENDED):",
        "entry.state is TaskState.RUNNING:",
        found_at=34,
    ),
    InjectedFault(
        "a task restores the checkpoint before the newest one",
        "instance/state/task_checkpoints.py",
        "            return CheckpointId(self._spec.topology_id, plan.complete)\n",
        "            return CheckpointId(self._spec.topology_id, max(1, plan.complete - 1))\n",
        found_at=9,
    ),
    InjectedFault(
        "a stream manager does not tell a new leader what its tasks have reported",
        "stmgr/stream_manager.py",
        "            tasks=[each for each in self._instances.reports.all() if each not in self._leaving],\n",
        "            tasks=[],\n",
        found_at=3,
    ),
    InjectedFault(
        "a report about a checkpoint that a broken connection loses is not repeated",
        "tmanager/leader/checkpoint_progress.py",
        "            if self._pending is not None and not self._pending.is_storing:\n"
        '                self.abandon("")\n'
        "            self._complete_after_end = self.is_final()\n",
        "            pass\n",
        found_at=4,
    ),
    InjectedFault(
        "a restore leaves the checkpoint under way",
        "tmanager/leader/checkpoint_progress.py",
        '        self.abandon("")\n        self.restores.order(regions)\n',
        "        self.restores.order(regions)\n",
        tried=2_000,
    ),
    InjectedFault(
        "a process does not connect again to a leader that it has lost",
        "ipc/locator.py",
        "            self._reactor.after(_RECONNECT_S, lambda: self._reconnect(endpoint))\n",
        "            del endpoint\n",
        found_at=4,
    ),
    InjectedFault(
        "a bolt saves and forwards the marker of a checkpoint when the first one has arrived",
        "instance/input/channel_alignment.py",
        "return number if number and all(",
        "return number if number and any(",
        found_at=14,
    ),
    InjectedFault(
        "a stream manager does not notice the frames that a broken connection has lost",
        "stmgr/peer_hub.py",
        "self._context.counters.lost_frames += max(0, missing)",
        "self._context.counters.lost_frames += min(0, max(0, missing))",
        found_at=6,
    ),
    InjectedFault(
        "data that waited for a marker is not read when the checkpoint is saved",
        "instance/input/channel_alignment.py",
        "        self.number = number\n        self.open()\n        return now_s",
        "        self.number = number\n        return now_s",
        found_at=1,
    ),
    InjectedFault(
        "a stream manager that was replaced is no loss",
        "tmanager/leader/restores.py",
        "        if reported == known:\n",
        "        if reported.losses == known.losses:\n",
        found_at=10,
    ),
    InjectedFault(
        "a restored task discards what belongs to its checkpoint",
        "instance/state/task_checkpoints.py",
        'component.pre_restore(str(source.number) if source else "")',
        'component.pre_restore("")',
        found_at=9,
    ),
    InjectedFault(
        "a spout waits for roots that its former stream manager had",
        "instance/spout_runner.py",
        "            self._callbacks.lose_all()\n        super().handle(command)\n",
        "            pass\n        super().handle(command)\n",
        with_state=False,
        found_at=14,
    ),
    InjectedFault(
        "credit that a full outlet held is not given back",
        "stmgr/router.py",
        "                if outlet is not None:\n                    self._release_all_of(outlet)\n",
        "",
        with_state=False,
        found_at=20,
    ),
    InjectedFault(
        "the window of a session goes on in the next one",
        "stmgr/outlet.py",
        'the queued segments wait for the next one."""\n        self.window = None\n',
        'the queued segments wait for the next one."""\n',
        with_state=False,
        found_at=18,
    ),
    InjectedFault(
        "a leader writes the plan without the version that it has read",
        "tmanager/state/plan_record.py",
        "encode_plan(plan), expected=self._version\n",
        "encode_plan(plan), expected=None\n",
        found_at=68,
    ),
    InjectedFault(
        "a former leader overwrites the plan of its successor",
        "tmanager/state/plan_record.py",
        "        if found > own:\n",
        "        if found > own + 99:\n",
        found_at=68,
    ),
    InjectedFault(
        "a container that died while it stopped starts again",
        "executor/container_run.py",
        "spec.container_id > 0 and is_over(statemgr, spec)",
        "spec.container_id < 0 and is_over(statemgr, spec)",
        tried=100,
    ),
    InjectedFault(
        "a leader does not look whether it has lost its lease",
        "tmanager/main.py",
        "        if lease.lost():\n",
        "        if stop_requested() and lease.lost():\n",
        found_at=103,
    ),
    InjectedFault(
        "a task reports a checkpoint before its state is written",
        "instance/state/checkpoint_saver.py",
        "            if job.payloads:\n",
        '            self._outcomes.append((job, ""))\n            self._on_outcome()\n            if job.payloads:\n',
        found_at=5,
    ),
    InjectedFault(
        "a leader sends a plan before it is written",
        "tmanager/state/plan_publisher.py",
        "        try:\n            self._store.save_plan(plan)\n",
        "        self._containers.send_to_stmgrs(self._containers.frame_for_stmgrs(_message(plan)))\n"
        "        try:\n"
        "            self._store.save_plan(plan)\n",
    ),
    InjectedFault(
        "a stream manager does not repeat END to a task that has restarted",
        "stmgr/router.py",
        "            for marker in self.markers.of(task_id):\n                self._put(task_id, marker)\n",
        "            pass\n",
        with_state=False,
        found_at=18,
    ),
    InjectedFault(
        "a task starts under a plan that does not know of its loss",
        "stmgr/stream_manager.py",
        "return orders is None or handled in orders.losses",
        "return orders is None or handled is not None",
        tried=25,
    ),
    InjectedFault(
        "a task processes data whose plan it does not have",
        "instance/input/channel_alignment.py",
        "if sent_under > version or self._marked",
        "if self._marked",
        found_at=86,
    ),
    InjectedFault(
        "a checkpoint is ordered while a task restarts",
        "tmanager/leader/checkpoint_progress.py",
        "now_s < self._not_before_s or bool(self._unready()))",
        "now_s < self._not_before_s)",
        found_at=40,
    ),
    InjectedFault(
        "the topology ends before its last checkpoint is committed",
        "tmanager/leader/checkpoint_progress.py",
        "return complete >= number and all(self._committed.get(task, 0) >= complete for task in tasks)",
        "return complete >= number",
        tried=24,
    ),
    InjectedFault(
        "a task that an update removes does not wait for all of its inputs",
        "instance/input/marker_counter.py",
        "return all(self._switched",
        "return any(self._switched",
        with_state=False,
        tried=24,
    ),
    InjectedFault(
        "an outlet ignores its hard limit",
        "stmgr/outlet.py",
        "self.full = self.full or taken_bytes > marks.hard_bytes",
        "self.full = False",
        with_state=False,
        found_at=52,
    ),
    InjectedFault(
        "the back pressure of a stream manager that is gone stays",
        "stmgr/peer_hub.py",
        "            self._context.pressure.forget(Reporter(inbound.container_id, inbound.incarnation))\n",
        "",
        with_state=False,
        tried=24,
    ),
    InjectedFault(
        "a new leader takes the losses that are reported to it for known",
        "tmanager/leader/restores.py",
        " or next((e for e in plan.losses if e.container_id == container_id), None)\n",
        "\n",
        found_at=42,
    ),
)


def broken_text(source: Path, fault: InjectedFault) -> str:
    """The text of the file of the package at `source`, with the fault."""
    text = (source / fault.file).read_text(encoding="utf-8")
    found = text.count(fault.before)
    if found != 1:
        message = f"{fault.file}: the place of the fault {fault.name!r} occurs {found} times; change injected_faults.py"
        raise AssertionError(message)
    return text.replace(fault.before, fault.after)


def broken_engine(folder: Path, source: Path, fault: InjectedFault) -> Path:
    """A copy of the package at `source` with a fault; returns the folder for `PYTHONPATH`."""
    shutil.copytree(source, folder / "heron", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "heron" / fault.file).write_text(broken_text(source, fault), encoding="utf-8")
    return folder

"""Inject the faults of a plan into a running topology, and keep the results."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from dataclasses import dataclass, field

import psutil

from chaos.chaos_run import ChaosRun, kind_of
from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Action, Fault, Kind, Victim
from chaos.recovery import Recovery
from chaos.updates import Updates
from heron.clock import monotonic_s

__all__ = ["Campaign", "Times"]

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.005
# Ten times the recovery of a container on a busy machine. With checkpoints, all tasks return and catch up.
_STUCK_S = 30.0
_RESTORED_S = 90.0  # each of several faults in a row returns all tasks to a checkpoint

Times = dict[Kind, list[float]]


@dataclass(slots=True)
class _Stopped:
    process: psutil.Process
    name: str
    until_s: float


@dataclass(slots=True)
class Campaign:
    """The results of a run.

    `recover_s` are the recovery times of kills without another fault at the same time; `crowded_s` are those of other
    kills. `back_s` are the times until a new process had initialised a killed task, whatever else failed meanwhile.
    `resume_s` are the times from SIGCONT of a stopped process without another fault. `unasked` are processes that were
    replaced although the campaign had not killed them.
    """

    chaos_run: ChaosRun
    updates: Updates | None = None
    killed: Counter[Kind] = field(default_factory=Counter)
    stopped: Counter[Kind] = field(default_factory=Counter)
    missed: int = 0
    recover_s: Times = field(default_factory=dict)
    crowded_s: Times = field(default_factory=dict)
    back_s: Times = field(default_factory=dict)
    resume_s: Times = field(default_factory=dict)
    unasked: list[str] = field(default_factory=list)
    _recovering: list[tuple[Recovery, Times]] = field(default_factory=list)
    _asleep: list[_Stopped] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)
    _dead: set[int] = field(default_factory=set)
    _injected_at_s: float = 0.0

    def run(self, plan: tuple[Fault, ...]) -> None:
        """Inject every fault at its time, then wait for recovery.

        Raises:
            ChaosError: when the topology does not recover.
        """
        began_s = monotonic_s()
        self._look()
        for fault in plan:
            self._pass_time(began_s + fault.at_s)
            self.inject(fault)
        self.settle()

    def settle(self) -> None:
        """Wait until no process is stopped and everything has recovered.

        Raises:
            ChaosError: when the topology does not recover.
        """
        while self._asleep or self._recovering:
            self._pass_time(monotonic_s() + _LOOK_EVERY_S)
        self._look()

    def inject(self, fault: Fault) -> None:
        """Inject one fault now."""
        present = self._look()
        self._injected_at_s = monotonic_s()
        alone = len(fault.victims) == 1 and not self._asleep and not self._recovering
        for recovery, _ in self._recovering:
            recovery.alone = False
        for victim in fault.victims:
            name = self._name(victim)
            if name not in present or (fault.action is Action.STOP and name in {each.name for each in self._asleep}):
                self.missed += 1
                _log.info("%s is absent or stopped already", name or victim.kind.value)
            elif fault.action is Action.KILL:
                self._kill(name, present, alone=alone)
            else:
                self._stop(name, present[name], fault.stopped_s)

    def close(self) -> None:
        """Continue the stopped processes and stop waiting; idempotent."""
        self._wake(float("inf"))
        for recovery, _ in self._recovering:
            recovery.close()

    def _kill(self, name: str, present: dict[str, psutil.Process], *, alone: bool) -> None:
        container, _, process = name.partition("/")
        gone = [name] if process != "executor" else [each for each in present if each.startswith(f"{container}/")]
        self._dead.update(present[each].pid for each in gone)
        leader = next((present[each].pid for each in gone if each.endswith("/tmanager")), None)
        with contextlib.suppress(psutil.NoSuchProcess):
            present[name].kill()
            _log.info("kill %s", name)
            recovery = Recovery(self.chaos_run, name, leader)
            recovery.alone = alone
            self._recovering.append((recovery, self.recover_s))
            self.killed[recovery.kind] += 1

    def _stop(self, name: str, process: psutil.Process, stopped_s: float) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
            _log.info("stop %s for %.1f s", name, stopped_s)
            self._asleep.append(_Stopped(process, name, monotonic_s() + stopped_s))
            self.stopped[kind_of(name)] += 1

    def _pass_time(self, until_s: float) -> None:
        pause = threading.Event()
        while (now_s := monotonic_s()) < until_s:
            self.chaos_run.check_alive()
            self._wake(now_s)
            self._recover(now_s)
            pause.wait(min(_LOOK_EVERY_S, until_s - now_s))

    def _wake(self, now_s: float) -> None:
        for each in [each for each in self._asleep if each.until_s <= now_s]:
            self._asleep.remove(each)
            with contextlib.suppress(psutil.NoSuchProcess):
                each.process.resume()
                _log.info("continue %s", each.name)
                if now_s != float("inf"):
                    recovery = Recovery(self.chaos_run, each.name)
                    recovery.alone = not self._asleep and not self._recovering
                    self._recovering.append((recovery, self.resume_s))
                    self._injected_at_s = now_s

    def _recover(self, now_s: float) -> None:
        stuck_s = _RESTORED_S if self.chaos_run.state_is_kept else _STUCK_S
        for each in list(self._recovering):
            recovery, times = each
            if (took_s := recovery.took_s()) is not None:
                self._recovering.remove(each)
                _log.info("%s has recovered after %.3f s", recovery.name, took_s)
                if recovery.back_s is not None and times is self.recover_s:
                    self.back_s.setdefault(recovery.kind, []).append(recovery.back_s)
                times = times if recovery.alone else self.crowded_s
                times.setdefault(recovery.kind, []).append(took_s)
            elif not self._asleep and now_s - max(self._injected_at_s, recovery.since_s) > stuck_s:
                raise ChaosError(self.chaos_run.failure(f"{recovery.name} has not recovered within {stuck_s:g} s"))

    def _look(self) -> dict[str, psutil.Process]:
        """Return the present processes, and record those that were replaced without a kill."""
        present = self.chaos_run.processes()
        if self.updates is not None and self.updates.moved.is_set():
            self.updates.moved.clear()
            self._known = {name: pid for name, pid in self._known.items() if name in present}
        for name, process in present.items():
            before = self._known.get(name, process.pid)
            if before != process.pid and before not in self._dead:
                self.unasked.append(name)
                _log.info("%s was replaced without a kill", name)
            self._known[name] = process.pid
        return present

    def _name(self, victim: Victim) -> str:
        """Return the name of the victim's process; "" if there is none of its kind during an update.

        Raises:
            ChaosError: when the topology has other processes than the plan expects, and there are no updates.
        """
        found = sorted(name for name in self._known if kind_of(name) is victim.kind)
        if self.updates is not None:
            return found[victim.index % len(found)] if found else ""
        if len(found) != COUNTS[victim.kind]:
            msg = f"{len(found)} processes of kind {victim.kind.value}: {found}; the plan expects {COUNTS[victim.kind]}"
            raise ChaosError(msg)
        return found[victim.index]

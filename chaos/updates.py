"""Carry out the updates of a plan while faults are injected, one after the other."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter

from chaos.chaos_run import ChaosRun
from chaos.update_plan import Update
from heron.clock import monotonic_s

__all__ = ["Updates"]

_log = logging.getLogger(__name__)

_TIMEOUT_S = 120.0
_NAME = "chaos"
# What a fault may do to an update. Everything else is a problem.
_OUTCOMES = {
    "was withdrawn": "withdrawn",
    "waits for": "refused",  # the update before continues after its command has given up
    "did not answer": "unreachable",
    "so nothing tells what to move": "refused",  # no tuple for as long as the loads are measured
    "it has one task": "refused",  # by an update before
    "no container has room": "refused",
    "exceeds the number of instances": "refused",
    "cannot take key groups; try again": "refused",  # a task was killed while the loads were measured
    "the owners of key groups are for": "refused",  # the update before has completed meanwhile
    "; try again": "refused",  # the same, or it was withdrawn: the packing plan is another one
}


class Updates:
    """The updates of a run. `outcomes` counts them; `problems` has the errors that no fault explains."""

    def __init__(self, chaos_run: ChaosRun, plan: tuple[Update, ...]) -> None:
        self.outcomes: Counter[str] = Counter(dict.fromkeys(("complete", *_OUTCOMES.values()), 0))
        self.problems: list[str] = []
        self.moved = threading.Event()
        """Set when processes may come and go. The code that reads the processes clears it."""
        self._chaos_run = chaos_run
        self._plan = plan
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def start(self) -> None:
        """Begin with the plan."""
        self._thread.start()

    def close(self) -> None:
        """Wait for the end of an update that has begun, and begin no other; idempotent."""
        self._given_up.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began_s = monotonic_s()
        for update in self._plan:
            if self._given_up.wait(max(began_s + update.at_s - monotonic_s(), 0.0)):
                return
            self.moved.set()
            try:
                self._update(update)
            except Exception as error:  # otherwise the run would pass without updates
                self.problems.append(f"update {' '.join(update.words())}: {type(error).__name__}: {error}")
            self.moved.set()

    def _update(self, update: Update) -> None:
        words = update.words()
        _log.info("update %s by the %s", " ".join(words), "client" if update.by_client else "command")
        if update.by_client:
            document = json.dumps(
                {"parallelism": update.parallelism, "containers": update.containers, "rebalance": update.rebalance}
            )
            command = [sys.executable, "-m", "chaos.client_update", _NAME, document]
        else:
            command = ["heron", "update", _NAME, *words, "--timeout", f"{_TIMEOUT_S:g}"]
        began_s = monotonic_s()
        ended = self._chaos_run.command(*command)
        _log.info("update %s: exit code %d after %.1f s", " ".join(words), ended.returncode, monotonic_s() - began_s)
        if ended.returncode == 0:
            self.outcomes["complete"] += 1
            return
        outcome = next((outcome for text, outcome in _OUTCOMES.items() if text in ended.stderr), None)
        _log.info("update %s: %s", outcome, ended.stderr.strip())
        if outcome is None:
            self.problems.append(f"update {' '.join(words)}: {ended.stderr.strip()[-1000:]}")
        else:
            self.outcomes[outcome] += 1

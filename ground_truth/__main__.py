"""``./dev truth``: inject each cause, and write down which diagnosis comes first."""

from __future__ import annotations

import math
import signal
import sys
from pathlib import Path

import click

from ground_truth.causes import CAUSES, HEALTHY, Cause, Healthy
from ground_truth.errors import TruthError
from ground_truth.recorded import Recording, write_round
from ground_truth.results import Results, publish, read_results
from ground_truth.topology_run import Home
from ground_truth.trial import Trial, judge, judge_healthy, try_cause, watch
from heron_health_manager.ds2_policy import Ds2Policy

_INTERRUPTED = 143
_NAMES = [each.name for each in (*CAUSES, *HEALTHY)]


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[NAME]...")
@click.option("--minutes", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Of each healthy run.")
@click.option("--record", type=click.Path(path_type=Path), help="Keep all observations in this folder.")
@click.option("--replay", type=click.Path(path_type=Path, exists=True), help="Judge those of this folder instead.")
@click.option("--dry-run", is_flag=True, help="Write nothing into the repository.")
@click.option("--fixtures", is_flag=True, help="Write the measurements of right diagnoses for the plugin's tests.")
def main(
    names: tuple[str, ...], minutes: float, record: Path | None, replay: Path | None, *, dry_run: bool, fixtures: bool
) -> None:
    """Start a topology for each cause, inject the cause, and note what the policy ds2 finds within 30 s.

    Names are causes or healthy loads; without names, all are tried. The outcomes replace the stored ones, and the
    tables of docs/health.md are written, unless it is a dry run. The exit code is 1 if a diagnosis is wrong.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # SIGTERM must also end the running topology
    chosen = names or tuple(_NAMES)
    session = _Session(minutes * 60, record, replay, fixtures=fixtures, publishes=not dry_run)
    try:
        for cause in (each for each in CAUSES if each.name in chosen):
            session.cause(cause)
        for healthy in (each for each in HEALTHY if each.name in chosen):
            session.healthy(healthy)
    finally:
        session.close()
    sys.exit(0 if session.good else 1)


class _Session:
    """Makes the trials, or reads their recordings; `good` tells whether all diagnoses were right."""

    def __init__(
        self, healthy_s: float, record: Path | None, replay: Path | None, *, fixtures: bool, publishes: bool
    ) -> None:
        self.good = True
        self._policy = Ds2Policy.open({})
        self._results: Results = read_results()
        self._home = Home() if replay is None else None
        self._healthy_s = healthy_s
        self._record, self._replay, self._fixtures = record, replay, fixtures
        self._publishes = publishes

    def cause(self, cause: Cause) -> None:
        """Tries a cause."""
        recording = self._recording(cause.name)
        if recording is None:
            return
        self._results.impossible.pop(cause.name, None)
        self._results.trials.pop(cause.name, None)
        try:
            trial = self._trial(cause, recording)
        except TruthError as error:
            self._results.impossible[cause.name] = str(error)
            click.echo(f"{cause.name}: cannot be injected: {error}")
            return
        self._results.trials[cause.name] = trial
        said = ", ".join(f"{each.first} after {each.at_s:.0f} s" for each in trial.said) or "nothing"
        click.echo(f"{cause.name}: {'right' if trial.is_right else 'WRONG'}: {said}")
        self.good &= trial.is_right
        recording.right = trial.right
        self._keep(recording, trial.complete_s if trial.right or trial.said else math.inf)

    def healthy(self, healthy: Healthy) -> None:
        """Watches a healthy load."""
        recording = self._recording(healthy.name)
        if recording is None:
            return
        if self._home is None:
            watched = judge_healthy(self._policy, recording.windows(self._policy), self._healthy_s)
        else:
            watched = watch(self._home, healthy, self._policy, self._healthy_s, recording.see)
        self._results.healthy[healthy.name] = watched
        said = sorted({alarm.diagnosis for alarm in watched.alarms})
        click.echo(f"{healthy.name}: {', '.join(said) or 'nothing'} in {watched.rounds} rounds")
        self.good &= not watched.alarms
        self._keep(recording, watched.seconds if not watched.alarms else None)

    def close(self) -> None:
        """Ends all processes, and publishes the outcomes so far."""
        if self._home is not None:
            self._home.remove()
        if missing := self._results.missing():
            click.echo(f"without an outcome yet: {', '.join(missing)}")
        if self._publishes:
            publish(self._results)

    def _trial(self, cause: Cause, recording: Recording) -> Trial:
        if self._home is None:
            return judge(cause.name, frozenset(recording.right), self._policy, recording.windows(self._policy))
        return try_cause(self._home, cause, self._policy, recording.see)

    def _recording(self, name: str) -> Recording | None:
        """A new recording, or a former one; None if there is none."""
        if self._replay is None:
            return Recording(name)
        path = self._replay / f"{name}.json"
        return Recording.read(path) if path.exists() else None

    def _keep(self, recording: Recording, right_s: float | None) -> None:
        if self._record is not None:
            recording.write(self._record)
        if self._fixtures and right_s is not None:
            write_round(recording, self._policy, right_s)


if __name__ == "__main__":
    main()

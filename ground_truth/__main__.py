"""``./dev truth``: inject each cause, and write down which diagnosis comes first."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections import deque
from pathlib import Path
from typing import IO

import click
import msgspec

from ground_truth.causes import CAUSES, HEALTHY, Cause
from ground_truth.errors import TruthError
from ground_truth.recorded import write_round
from ground_truth.results import Results, publish, read_results
from ground_truth.topology_run import Home
from ground_truth.trial import Trial, try_cause, watch
from heron.spi.health import HealthPolicy
from heron.spi.health_values import Observation
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.policy_round import Round

_INTERRUPTED = 143
_NAMES = [each.name for each in (*CAUSES, *HEALTHY)]


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(_NAMES), metavar="[NAME]...")
@click.option("--minutes", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Of each healthy run.")
@click.option("--record", type=click.Path(path_type=Path), help="Keep all observations in this folder.")
@click.option("--fixtures", is_flag=True, help="Write the measurements of right diagnoses for the plugin's tests.")
@click.option("-v", "--verbose", is_flag=True, help="Show the findings of each round on stderr.")
def main(names: tuple[str, ...], minutes: float, record: Path | None, *, fixtures: bool, verbose: bool) -> None:
    """Start a topology for each cause, inject the cause, and note what the policy ds2 finds within 30 s.

    Names are causes or healthy loads; without names, all are tried. The outcomes replace the stored ones, and the
    tables of docs/health.md are written. The exit code is 1 if a diagnosis is wrong.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # SIGTERM must also end the running topology
    chosen = names or tuple(_NAMES)
    results, policy, home = read_results(), Ds2Policy.open({}), Home()
    good = True
    try:
        for cause in (each for each in CAUSES if each.name in chosen):
            with _Rounds(record, cause.name, verbose=verbose) as rounds:
                good &= _try(results, home, cause, policy, rounds)
                if fixtures:
                    rounds.write(policy, results.trials.get(cause.name))
        for healthy in (each for each in HEALTHY if each.name in chosen):
            with _Rounds(record, healthy.name, verbose=verbose) as rounds:
                watched = results.healthy[healthy.name] = watch(home, healthy, policy, minutes * 60, rounds.see)
                if fixtures:
                    rounds.write_last(policy, healthy.name)
            click.echo(f"{healthy.name}: {len(watched.alarms)} diagnoses in {watched.rounds} rounds")
            good &= not watched.alarms
    finally:
        home.remove()
    if missing := results.missing():
        click.echo(f"without an outcome yet: {', '.join(missing)}")
    publish(results)
    sys.exit(0 if good else 1)


def _try(results: Results, home: Home, cause: Cause, policy: HealthPolicy, rounds: _Rounds) -> bool:
    results.trials.pop(cause.name, None)
    results.impossible.pop(cause.name, None)
    try:
        trial = results.trials[cause.name] = try_cause(home, cause, policy, rounds.see)
    except TruthError as error:
        results.impossible[cause.name] = str(error)
        click.echo(f"{cause.name}: cannot be injected: {error}")
        return True
    said = ", ".join(f"{each.first} after {each.at_s:.0f} s" for each in trial.said) or "nothing"
    click.echo(f"{cause.name}: {'right' if trial.is_right else 'WRONG'}: {said}")
    return trial.is_right


class _Rounds(contextlib.AbstractContextManager["_Rounds"]):
    """Shows and records the rounds of a trial."""

    def __init__(self, folder: Path | None, name: str, *, verbose: bool) -> None:
        self._verbose = verbose
        self._seen: deque[tuple[float, Observation]] = deque()
        self._file: IO[bytes] | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"{name}.jsonl").open("wb")

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, policy: HealthPolicy, trial: Trial | None) -> None:
        """Writes the round in which all right diagnoses were found."""
        if trial is None or trial.complete_s is None:
            return
        seen = [newest for at_s, newest in self._seen if round(at_s, 1) <= trial.complete_s]
        write_round(trial.cause, trial.right, policy, self._window(policy, seen))

    def write_last(self, policy: HealthPolicy, name: str) -> None:
        """Writes the last round, which has no right diagnosis."""
        write_round(name, (), policy, self._window(policy, [newest for _, newest in self._seen]))

    def _window(self, policy: HealthPolicy, seen: list[Observation]) -> list[Observation]:
        return [each for each in seen if seen[-1].at_s - each.at_s <= policy.rhythm().look_back_s]

    def see(self, newest: Observation, found: Round, at_s: float) -> None:
        """Takes one round."""
        self._seen.append((at_s, newest))
        if self._file is not None:
            self._file.write(msgspec.json.encode([at_s, newest]) + b"\n")
        if self._verbose:
            shown = [
                f"{each.diagnosis.name} {each.diagnosis.subject} {each.diagnosis.confidence:.0%}"
                for each in found.findings
            ]
            click.echo(f"{at_s:6.1f} {', '.join(shown)}", err=True)


if __name__ == "__main__":
    main()

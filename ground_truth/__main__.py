"""``./dev truth``: inject each cause, and write down which diagnosis comes first."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import IO

import click
import msgspec

from ground_truth.causes import CAUSES, HEALTHY, Cause
from ground_truth.errors import TruthError
from ground_truth.results import Results, publish, read_results
from ground_truth.topology_run import Home
from ground_truth.trial import try_cause, watch
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
@click.option("-v", "--verbose", is_flag=True, help="Show the findings of each round on stderr.")
def main(names: tuple[str, ...], minutes: float, record: Path | None, *, verbose: bool) -> None:
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
        for healthy in (each for each in HEALTHY if each.name in chosen):
            with _Rounds(record, healthy.name, verbose=verbose) as rounds:
                watched = results.healthy[healthy.name] = watch(home, healthy, policy, minutes * 60, rounds.see)
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
        self._file: IO[bytes] | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"{name}.jsonl").open("wb")

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def see(self, newest: Observation, found: Round, at_s: float) -> None:
        """Takes one round."""
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

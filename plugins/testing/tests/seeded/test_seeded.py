"""Whole topologies from seeds: a seed repeats, no invariant fails, and faults in the engine's code are found."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from injected_faults import INJECTED_FAULTS, InjectedFault, broken_engine, broken_text

import heron
from heron_testing.seeded.faults import Fault, FaultKind, draw_faults
from heron_testing.seeded.shrinking import shrink
from heron_testing.seeded.simulation import WORD_TARGETS, Outcome, Scenario

SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))
_LOSES_WORDS = "the death of a task is not reported as a loss"  # and ends, so that it is shrunk soon
_FIRST, _RUNS = 18, 4  # a start with wide queues and one with narrow ones

MODES = {"at least once": (), "effectively once": ("--state",)}


FOUND = sorted((each for each in INJECTED_FAULTS if each.found_at), key=lambda each: each.found_at)
ONE_IN_MATRIX = (pytest.param("at least once", marks=pytest.mark.matrix), "effectively once")


def name_of(fault: InjectedFault) -> str:
    """The name of the test."""
    return fault.name


def run_seeds(*arguments: str, engine: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Simulates in another interpreter, whose clock can be replaced; `engine` is a folder with another `heron`."""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    if engine is not None:
        environment["PYTHONPATH"] = str(engine)
    command = (sys.executable, "-m", "heron_testing.seeded", *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@functools.cache
def some_seeds(mode: str) -> subprocess.CompletedProcess[str]:
    """The runs of some seeds, which two tests look at."""
    return run_seeds("--seed", str(_FIRST), "--runs", str(_RUNS), "--each", *MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_no_seed_breaks_an_invariant(mode: str) -> None:
    """Kills, stops, cuts, lost leases, a store that is away, updates: nothing is lost, and every run ends."""
    ran = some_seeds(mode)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{_RUNS} runs, 0 failed" in ran.stdout


@pytest.mark.parametrize("mode", ONE_IN_MATRIX)
def test_new_code_breaks_no_invariant(mode: str) -> None:
    """Kills and cuts near a change of the code, canaries, code that fails: one version runs, and nothing is lost."""
    ran = run_seeds("--seed", "41", "--runs", "4", "--code", *MODES[mode])
    assert "4 runs, 0 failed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("what", [(), ("--code",)])
@pytest.mark.parametrize("mode", MODES)
def test_thousands_of_seeds_break_no_invariant(mode: str, what: tuple[str, ...]) -> None:
    """Ten thousand seeds in a whole soak, and a thousand with changes of the code; the first failing one ends it."""
    runs = round((500 if what else 5000) * SOAK_MINUTES / 10)
    ran = run_seeds("--seed", "1000", "--runs", str(runs), "--first", *MODES[mode], *what)
    assert f"{runs} runs, 0 failed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("mode", ONE_IN_MATRIX)
def test_a_seed_repeats_its_trace(mode: str) -> None:
    """Every delivered message, at its time: two processes agree, with a trace or without, and seeds differ."""
    hashes = re.findall(r"trace ([0-9a-f]{16})", some_seeds(mode).stdout)
    traced = run_seeds("--seed", str(_FIRST + 2), "--trace", *MODES[mode])
    assert re.findall(r"trace ([0-9a-f]{16})", traced.stdout) == hashes[2:3], traced.stdout[-2000:] + traced.stderr
    assert len(set(hashes)) == _RUNS


@pytest.mark.matrix
def test_the_trace_of_a_shrunk_run_repeats_to_the_byte(tmp_path: Path) -> None:
    """The command that a failing seed prints gives its shortest trace, and gives it again."""
    fault = next(each for each in FOUND if each.name == _LOSES_WORDS)
    engine = broken_engine(tmp_path, Path(heron.__path__[0]), fault)
    mode = MODES["effectively once" if fault.with_state else "at least once"]
    shrunk = run_seeds("--seed", str(fault.found_at), *mode, engine=engine)
    found = re.search(r"repeat it: \./dev simulate -- (.*)", shrunk.stdout)
    assert found is not None, shrunk.stdout + shrunk.stderr
    traces = [run_seeds(*found[1].split(), engine=engine).stdout for _ in range(2)]
    assert f"seed {fault.found_at} fails:" in traces[0]
    assert traces[0] == traces[1]
    assert len(traces[0].splitlines()) > 1000


@pytest.mark.matrix
@pytest.mark.parametrize("fault", FOUND, ids=name_of)
def test_a_fault_in_the_engine_is_found(fault: InjectedFault, tmp_path: Path) -> None:
    """A simulation that finds nothing could be one that looks at nothing. The seed is known, so one run is enough."""
    engine = broken_engine(tmp_path, Path(heron.__path__[0]), fault)
    mode = MODES["effectively once"] if fault.with_state else ()
    run = run_seeds("--seed", str(fault.found_at), "--first", *mode, engine=engine)
    assert f"seed {fault.found_at} fails:" in run.stdout, run.stdout + run.stderr


def test_the_page_lists_the_faults() -> None:
    """With a seed that finds each of them, or those that do not; each has its place in the engine."""
    page = (Path(__file__).resolve().parents[4] / "docs" / "testing.md").read_text(encoding="utf-8")
    for fault in INJECTED_FAULTS:
        mode = "effectively once" if fault.with_state else "at least once"
        seeds = str(fault.found_at) if fault.found_at else f"1 to {fault.tried}" if fault.tried else "none yet"
        assert f"| {fault.name} | {mode} | {seeds} | " in page
        assert broken_text(Path(heron.__path__[0]), fault)


def test_a_failing_run_is_repeated_with_fewer_faults() -> None:
    """Only the faults that it takes are left, in their order."""
    faults = draw_faults(3, WORD_TARGETS, within_s=8.0, most=6) + draw_faults(5, WORD_TARGETS, within_s=8.0, most=6)
    guilty = {faults[1], faults[-1]}
    runs = []

    def run(scenario: Scenario) -> Outcome:
        runs.append(scenario)
        fails = guilty <= set(scenario.faults)
        return Outcome(scenario, "", 0.0, 0, ("it fails",) if fails else ())

    assert len(faults) > len(guilty)
    assert shrink(Scenario(3, faults), run).scenario.faults == (faults[1], faults[-1])
    assert len(runs) <= 1 + len(faults) ** 2


def test_the_faults_of_a_seed_are_drawn_before_the_run() -> None:
    """So a run without some of them has the others at the same times."""
    assert draw_faults(8, WORD_TARGETS, within_s=8.0) == draw_faults(8, WORD_TARGETS, within_s=8.0)
    assert str(Fault(1.5, FaultKind.CUT, "c0 c1", 0.25)) == "at 1.500 s: cut c0 c1 for 0.25 s"

"""What `./dev truth` makes of its trials: verdicts, tables, and the document that has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ground_truth.causes import CAUSES, HEALTHY
from ground_truth.errors import TruthError
from ground_truth.results import BEGIN, END, Results, read_results, section, with_section
from ground_truth.trial import Alarm, Said, Trial, Watched

ROOT = Path(__file__).resolve().parents[1]
RIGHT = ("stuck-task enrich/2",)
SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))


def trial(*said: Said, complete_s: float | None = 11.0, at_end: tuple[str, ...] = RIGHT) -> Trial:
    return Trial("stopped-task", RIGHT, said, complete_s, at_end)


@pytest.mark.parametrize(
    ("outcome", "is_right"),
    [
        (trial(Said(11.0, RIGHT[0])), True),
        (trial(Said(11.0, RIGHT[0]), Said(14.0, "slow-task enrich/4")), True),
        (trial(Said(5.0, "slow-task enrich/4"), Said(11.0, RIGHT[0])), False),
        (trial(Said(11.0, "stuck-task enrich/3")), False),
        (trial(complete_s=None, at_end=()), False),
        (trial(Said(11.0, RIGHT[0]), complete_s=None), False),
    ],
)
def test_only_the_first_diagnosis_counts(outcome: Trial, is_right: bool) -> None:
    """A right diagnosis behind a wrong one would come after a wrong action; the subject must be right too."""
    assert outcome.is_right is is_right


def test_the_tables_show_wrong_and_missing_diagnoses() -> None:
    """A reader sees at once what does not work."""
    alarm = Alarm(3.0, "slow-host container 1", "why")
    lines = section(
        Results(
            {
                "stopped-task": trial(Said(5.2, "slow-task enrich/4")),
                "slow-task": trial(complete_s=None, at_end=()),
                "paused-task": Trial("paused-task", (), (), None, ()),
            },
            {"bursts": Watched(60.0, 58, (alarm, alarm), 0.95)},
            {"slow-link": "this machine has no network of hosts"},
        )
    )
    assert lines[0] == "The right diagnosis came first in 1 of 3 causes."
    (wrong,) = [line for line in lines if "SIGSTOP" in line]
    assert wrong.endswith("| `slow-task enrich/4` **(wrong)** | 5 s | 11 s | `stuck-task enrich/2` |")
    (none,) = [line for line in lines if "4 times as long" in line]
    assert none.endswith("| `stuck-task` | none |  | never | none |")
    (over,) = [line for line in lines if "stopped for 6 s" in line]
    assert over.endswith("| none | none |  |  | none |"), "a cause that is over by itself has nothing to complete"
    assert "- slow-link: this machine has no network of hosts" in lines
    assert any(line.startswith("Not tried yet: `hanging-call`") for line in lines)
    assert lines[-1].endswith("| 60 s | 58 | 95% | `slow-host container 1` |")


def test_the_document_has_the_newest_outcomes() -> None:
    """The tables are made by the command, and nobody edits them."""
    text = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    assert with_section(text, section(read_results())) == text


def test_every_outcome_is_that_of_a_cause_or_load() -> None:
    """A cause that is renamed must be tried again; the document names those that were not tried."""
    results = read_results()
    assert {*results.trials, *results.impossible} <= {each.name for each in CAUSES}
    assert set(results.healthy) <= {each.name for each in HEALTHY}
    text = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in results.missing())


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}\n{END}\n{BEGIN}\n{END}"])
def test_a_document_without_place_is_an_error(text: str) -> None:
    """Nothing is written then."""
    with pytest.raises(TruthError, match="once, in this order"):
        with_section(text, ["line"])


@pytest.mark.soak
@pytest.mark.timeout(3 * 60 * SOAK_MINUTES + 900)
def test_healthy_loads_get_no_diagnosis() -> None:
    """Neither bursts nor the noise of a busy machine are a cause."""
    words = [*(each.name for each in HEALTHY), "--minutes", str(SOAK_MINUTES)]
    done = truth(*words)
    assert done.returncode == 0, done.stdout


@pytest.mark.soak
@pytest.mark.timeout(120 * len(CAUSES))
def test_the_right_diagnosis_comes_first() -> None:
    """In 13 of 14 causes at least; those that this machine cannot inject do not count."""
    done = truth(*(each.name for each in CAUSES))
    right, wrong = done.stdout.count(": right: "), done.stdout.count(": WRONG: ")
    assert right + wrong >= 14
    assert right >= 13 / 14 * (right + wrong), done.stdout


def truth(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``./dev truth`` without writing into the repository."""
    command = [sys.executable, "-m", "ground_truth", *words, "--dry-run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_no_stored_case_has_a_wrong_cause_first_or_at_the_end() -> None:
    """Each cause has an outcome, or a reason why it has none. What is stored has a confidence of at least 50 %."""
    results = read_results()
    causes = {each.name: each for each in CAUSES}
    assert results.trials.keys() | results.impossible.keys() == causes.keys()
    assert len(results.trials) >= 30
    false = {
        name: wrong
        for name, trial in results.trials.items()
        if (wrong := {*trial.at_end, *(each.first for each in trial.said)} - {*trial.right, *causes[name].also})
    }
    assert false == {}
    assert [name for name, trial in results.trials.items() if not trial.is_right] == []

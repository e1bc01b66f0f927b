"""Which tests of those that a change reaches fit into the time of ``./dev quick``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["first_within", "seconds_of_files"]

_UNKNOWN_S = 2.0  # of a file of tests that has not run here yet


def seconds_of_files(tests: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each file, from those of its tests in the last run (keys are ids of pytest)."""
    files: dict[str, float] = {}
    for test, seconds in tests.items():
        file = test.partition("::")[0]
        files[file] = files.get(file, 0.0) + seconds
    return files


def first_within(budget_s: float, files: Sequence[str], seconds: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Return the files that run, and those that are left: the first files have precedence, and one always runs."""
    chosen: list[str] = []
    left: list[str] = []
    for file in files:
        took_s = seconds.get(file, _UNKNOWN_S)
        if took_s <= budget_s or not chosen:
            chosen.append(file)
            budget_s -= took_s
        else:
            left.append(file)
    return chosen, left

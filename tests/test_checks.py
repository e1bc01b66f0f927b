"""The sections behind `./dev test` and `./dev quick`, and what they say while they run."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from checks.choice import first_within, seconds_of_files
from checks.examples import pytest_collection_modifyitems
from checks.progress import Clockwork
from checks.sections import Result, Section, run_beside, summary
from checks.type_cache import copy_whole
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]


def python(name: str, program: str, *, live: bool = False) -> Section:
    return Section(name, (sys.executable, "-c", program), live)


def test_a_failed_section_hides_no_other(tmp_path: Path) -> None:
    """Each ends with its own result, and only the output of the failed one is shown."""
    lines: list[str] = []
    sections = [
        python("bad", "print('what is wrong'); raise SystemExit(3)"),
        python("good", "print('much output'); open('done', 'w')"),
    ]
    results = {each.section: each.code for each in run_beside(sections, tmp_path, lines.append)}
    assert results == {"bad": 3, "good": 0}
    assert (tmp_path / "done").exists()
    text = "\n".join(lines)
    assert "what is wrong" in text
    assert "bad: FAILED (exit code 3)" in text
    assert "much output" not in text


def test_sections_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for what the other writes."""
    program = (
        "import os, threading; open({mine!r}, 'w').close()\n"
        "for _ in range(600):\n"
        "    if os.path.exists({other!r}): break\n"
        "    threading.Event().wait(0.05)\n"
        "else: raise SystemExit(1)"
    )
    sections = [
        python("a", program.format(mine="a", other="b")),
        python("b", program.format(mine="b", other="a")),
    ]
    assert [each.code for each in run_beside(sections, tmp_path, lambda _: None)] == [0, 0]


def test_no_section_begins_after_an_interrupt(tmp_path: Path) -> None:
    """A person who interrupts a run of minutes does not wait for the sections that have not begun."""
    sections = [
        python("a", "import os, signal, threading; os.kill(os.getppid(), signal.SIGINT); threading.Event().wait(60)"),
        python("b", "open('b', 'w')"),
    ]
    with pytest.raises(KeyboardInterrupt):
        run_beside(sections, tmp_path, lambda _: None, 1)
    assert not (tmp_path / "b").exists()


def test_a_section_that_may_be_empty_passes_without_tests(tmp_path: Path) -> None:
    """What a person selects is seldom in each section."""
    empty = Section("some", (sys.executable, "-c", "raise SystemExit(5)"))
    results = run_beside([empty, replace(empty, may_be_empty=True)], tmp_path, lambda _: None)
    assert sorted(each.code for each in results) == [0, 5]


def test_property_tests_of_packages_draw_a_part_of_their_examples(tmp_path: Path) -> None:
    """A quarter, and few where few are wanted; once for each function, whatever its parameters."""
    drawn: Counter[str] = Counter()

    def item(name: str, folder: str, examples: int) -> pytest.Item:
        @settings(max_examples=examples, database=None, deadline=None)
        @given(st.integers())
        def obj(_number: int) -> None:
            drawn[name] += 1

        return cast("pytest.Item", SimpleNamespace(path=tmp_path / folder / "test_some.py", obj=obj))

    items = [item("many", "plugins/a", 40), item("few", "heron-core", 3), item("elsewhere", "tests", 40)]
    pytest_collection_modifyitems(cast("pytest.Config", SimpleNamespace(rootpath=tmp_path)), [*items, *items])
    for each in items:
        cast("pytest.Function", each).obj()
    assert drawn == {"many": 10, "few": 3, "elsewhere": 40}


def test_the_summary_ends_with_what_failed() -> None:
    """A reader looks at the last line first."""
    lines = summary([Result("lint", 1, 2.0), Result("tests", 0, 3.4)]).splitlines()
    assert lines == ["  tests: passed, 3 s", "  lint: FAILED (exit code 1), 2 s"]


def test_the_time_left_follows_from_the_last_run() -> None:
    """Known tests count with their seconds, new ones with the mean, on two workers."""
    clockwork = Clockwork({"a": 4.0, "b": 2.0, "gone": 9.0}, workers=2)
    clockwork.collected(["a", "b", "new"])
    clockwork.started("a", 10.0)
    assert clockwork.left_s(11.0) == pytest.approx((3.0 + 2.0 + 5.0) / 2)
    clockwork.ended("a", 13.0)
    clockwork.started("new", 13.0)
    assert clockwork.line(14.0) == "1 of 3 tests, 0 failed, about 3 s left; 1 s in new"
    assert clockwork.slowest() == [(3.0, "a")]


def test_the_line_names_the_test_that_runs_longest() -> None:
    """A test that hangs is seen while it hangs."""
    clockwork = Clockwork({}, workers=2)
    clockwork.collected(["a", "b"])
    clockwork.started("a", 0.0)
    clockwork.started("b", 5.0)
    assert clockwork.line(65.0) == "0 of 2 tests, 0 failed, about 0 s left; 65 s in a"


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_failure_shows_at_once(tmp_path: Path, workers: tuple[str, ...]) -> None:
    """In the order of the output: the failure, then what ran after it, then the slowest tests and the counts."""
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "def test_bad(): assert 1 == 2, 'here'\n"
        "@pytest.mark.parametrize('n', range(20))\n"
        "def test_good(n): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ("-p", "checks.progress", "--section", "some")
    command = [sys.executable, "-m", "pytest", "-q", *words, *workers, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    failure, slowest = (
        ran.stdout.index("FAILED test_some.py::test_bad (call)"),
        ran.stdout.index("some: the slowest tests:"),
    )
    assert failure < ran.stdout.index("AssertionError: here") < slowest
    assert "1 failed, 20 passed" in ran.stdout
    assert "::test_bad" in (tmp_path / ".pytest_cache/v/checks/seconds").read_text()


def test_the_nearest_files_run_within_the_budget() -> None:
    """Files are given nearest first; a short one may follow where a long one does not fit."""
    seconds = seconds_of_files({"a.py::test_1": 3.0, "a.py::test_2[x::y]": 2.0, "b.py::test": 9.0, "c.py::test": 1.0})
    assert seconds == {"a.py": 5.0, "b.py": 9.0, "c.py": 1.0}
    assert first_within(10.0, ["a.py", "b.py", "c.py", "unknown.py"], seconds) == (
        ["a.py", "c.py", "unknown.py"],
        ["b.py"],
    )
    assert first_within(1.0, ["b.py", "a.py"], seconds) == (["b.py"], ["a.py"])


def test_a_cache_is_replaced_whole_or_stays_as_it_is(tmp_path: Path) -> None:
    """Without a source, as on a new machine, nothing is lost."""
    source, target, making = tmp_path / "source", tmp_path / "target", tmp_path / "making"
    target.mkdir()
    (target / "former").touch()
    copy_whole(source, target, making)
    assert [each.name for each in target.iterdir()] == ["former"]
    source.mkdir()
    (source / "newer").touch()
    copy_whole(source, target, making)
    assert [each.name for each in target.iterdir()] == ["newer"]
    assert list(making.iterdir()) == []

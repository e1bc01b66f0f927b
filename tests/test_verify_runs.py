"""The suites that a call runs, their records, and the printed lines."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from verify.__main__ import main
from verify.keys import Key
from verify.records import Record, Records
from verify.suite_run import SuiteRunner
from verify.suites import Kind, pytest_suite
from verify.turn import Standing, State, Turn, standing
from verify.verification import Verification


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


KEY = Key("k", {"core": "1", "plugins": "1"}, {}, {})
RECORD = Record(
    suite="a",
    key="k",
    when="2026-11-22T10:00:00Z",
    seconds=60.0,
    passed=3,
    skipped=0,
    python="CPython 3.11.7",
    platform="Debian",
    servers={"s3": "v1"},
    libraries={"boto3": "1.0"},
    inputs=KEY.groups,
)


def test_only_an_equal_key_makes_a_record_valid() -> None:
    """No other field of the record matters."""
    assert standing("a", KEY, RECORD).state is State.VALID
    assert standing("a", KEY, None).state is State.NEVER
    assert standing("a", replace(KEY, value="other"), RECORD).state is State.CHANGED
    core = replace(KEY, value="other", groups={"core": "2", "plugins": "1"})
    assert standing("a", core, RECORD).state is State.CORE_CHANGED
    both = replace(KEY, value="other", groups={"core": "2", "plugins": "2"})
    assert standing("a", both, RECORD).state is State.CHANGED
    assert standing("a", both, RECORD, 7).reason == "changed 7 commits ago, after 2026-11-22T10:00:00Z: core, plugins"
    shared = replace(KEY, value="other", groups={**KEY.groups, "shared": "1"})
    assert standing("a", shared, RECORD).state is State.CORE_CHANGED
    new_group = replace(KEY, value="other", groups={**KEY.groups, "servers": "1"})
    assert standing("a", new_group, RECORD).state is State.CHANGED


def suite_in(suite: str, state: State, day: int = 1, seconds: float = 60.0, behind: int = 0) -> Standing:
    record = None if state is State.NEVER else replace(RECORD, suite=suite, when=f"2026-11-{day:02}", seconds=seconds)
    return Standing(suite, state, (), record, behind)


def order(turn: Turn, seconds: float = 0.0) -> list[str]:
    """Return the suites of a turn in order, if each takes `seconds`."""
    found: list[str] = []
    while each := turn.take(len(found) * seconds):
        found.append(each.suite)
    return found


def test_suites_whose_own_inputs_changed_run_before_those_of_a_changed_core() -> None:
    """A changed driver is tested with its server first; of each kind, the suite that is furthest behind."""
    suites = [
        suite_in("core", State.CORE_CHANGED, behind=40),
        suite_in("new", State.NEVER),
        suite_in("own", State.CHANGED, behind=3),
        suite_in("older", State.CHANGED, behind=5),
        suite_in("older core", State.CORE_CHANGED, behind=50),
    ]
    assert order(Turn(suites)) == ["older", "own", "new", "older core", "core"]
    assert order(Turn(suites, budget_s=150.0), seconds=60.0) == ["older", "own"]


def test_a_suite_that_is_overdue_runs_first() -> None:
    """The limit holds for suites of which only the core changed too; a suite that never ran has no date."""
    suites = [
        suite_in("own", State.CHANGED, behind=3),
        suite_in("late", State.CORE_CHANGED, behind=51),
        suite_in("later", State.CORE_CHANGED, behind=60),
        suite_in("new", State.NEVER),
        suite_in("valid", State.VALID, behind=70),
    ]
    turn = Turn(suites, budget_s=60.0)
    assert order(turn, seconds=60.0) == ["later"]
    assert [each.suite for each in turn.left if each.overdue] == ["late"]


def test_suites_with_a_changed_core_take_turns_within_the_budget() -> None:
    """The oldest record comes first. If a suite does not fit, a shorter suite runs."""
    suites = [
        suite_in("c", State.CORE_CHANGED, day=3),
        suite_in("a", State.CORE_CHANGED, day=1),
        suite_in("b", State.CORE_CHANGED, day=2, seconds=600.0),
    ]
    turn = Turn(suites, budget_s=125.0)
    assert order(turn, seconds=60.0) == ["a", "c"]
    assert [each.suite for each in turn.left] == ["b"]


def test_one_valid_suite_runs_again_if_the_budget_allows() -> None:
    """The suite with the oldest record finds changes outside the tree."""
    suites = [suite_in("a", State.VALID, day=2), suite_in("b", State.VALID, day=1), suite_in("c", State.VALID, day=3)]
    assert order(Turn(suites)) == ["b"]
    assert order(Turn(suites, budget_s=10.0)) == []
    assert Turn(suites, budget_s=10.0).left == []


def test_everything_runs_when_asked_for() -> None:
    """Suites with valid records run too, the longest first, without a limit."""
    suites = [suite_in("a", State.VALID), suite_in("b", State.CORE_CHANGED, seconds=90.0), suite_in("c", State.NEVER)]
    assert order(Turn(suites, budget_s=0.0, everything=True)) == ["b", "c", "a"]


def test_records_are_files_that_people_can_read(tmp_path: Path) -> None:
    """Records are committed; each shows the time and the versions of a green run."""
    records = Records(tmp_path)
    records.write(RECORD)
    written = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (written["when"], written["python"]) == ("2026-11-22T10:00:00Z", "CPython 3.11.7")
    assert written["servers"] == {"s3": "v1"}
    assert records.read() == {"a": RECORD}


def test_a_file_that_is_no_record_counts_as_absent(tmp_path: Path) -> None:
    """A file with merge conflicts, or a record of another suite, proves nothing."""
    records = Records(tmp_path)
    records.write(RECORD)
    (tmp_path / "b.json").write_bytes((tmp_path / "a.json").read_bytes())
    (tmp_path / "c.json").write_text("<<<<<<<", encoding="utf-8")
    assert set(records.read()) == {"a"}
    assert records.remove_others({"a"}) == ["b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("body", "green", "passed"),
    [("pass", True, 1), ("assert False", False, 0), ("pytest.skip('x')", False, 0)],
)
def test_only_a_run_with_passed_tests_and_no_failure_is_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, green: bool, passed: int
) -> None:
    """A suite with only skipped tests shows nothing. Its processes keep their bytecode, as with `./dev`."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    write(tmp_path, "pytest.ini", "[pytest]\nmarkers =\n    servers: x\n    chaos: x\n    soak: x\n")
    text = "import os, pytest, sys\n\n\n@pytest.mark.servers\ndef test_it():\n"
    text += f"    assert os.environ['CI'] and not sys.dont_write_bytecode\n    {body}\n"
    write(tmp_path, "tests/test_it.py", text + "\n\ndef test_without_server():\n    assert False\n")
    outcome = SuiteRunner(tmp_path).run(pytest_suite("it", Kind.FILE, "tests/test_it.py", "servers"))
    assert (outcome.green, outcome.passed) == (green, passed), outcome.output


@pytest.mark.matrix
def test_the_installation_of_a_server_does_not_count(tmp_path: Path) -> None:
    """The time decides whether a suite fits into a budget, and only the first run installs."""
    write(tmp_path, "pytest.ini", "[pytest]\nmarkers =\n    servers: x\n    chaos: x\n    soak: x\n")
    text = "import os, pathlib, pytest\n\n\n@pytest.mark.servers\ndef test_it():\n"
    log = "    pathlib.Path(os.environ['HERON_TESTS_INSTALL_LOG']).write_text('900.0\\n100.0\\n')\n"
    write(tmp_path, "tests/test_it.py", text + log)
    outcome = SuiteRunner(tmp_path).run(pytest_suite("it", Kind.FILE, "tests/test_it.py", "servers"))
    assert outcome.green, outcome.output
    assert outcome.seconds < 0


@pytest.mark.matrix  # the keys of this repository take long
def test_the_list_shows_each_suite_with_its_state_and_the_debt() -> None:
    """The list runs nothing, and names stale suites."""
    names = ("on-s3-http", "uploader-s3", "wheels")
    listed = CliRunner().invoke(main, ["--list", *names])
    assert listed.exit_code == 0, listed.output
    *lines, debt = listed.output.splitlines()
    assert [line.split()[0] for line in lines] == list(names)
    assert f" of {len(lines)} suites not run for the present code" in debt
    assert CliRunner().invoke(main, ["--debt", *names]).output.splitlines() == [debt]


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """A repository with two green suites that need no real server."""
    markers = "markers = ['servers: x', 'chaos: x', 'soak: x']"
    write(tmp_path, "pyproject.toml", f"[tool.pytest.ini_options]\n{markers}\naddopts = ['-p', 'no:cacheprovider']\n")
    write(tmp_path, "constraints.txt", "pytest==9.0\n")
    for name in ("a", "b"):
        text = f"import pytest\n\n\n@pytest.mark.servers\ndef test_{name}():\n    pass\n"
        write(tmp_path, f"tests/contract/test_{name}.py", text)
    return tmp_path


def verify(root: Path, capsys: pytest.CaptureFixture[str], budget_s: float | None = None) -> tuple[bool, list[str]]:
    """Return whether all suites that ran were green, and the words and suites of the printed lines."""
    verification = Verification(root)
    chosen = verification.chosen(())
    green = verification.run(Turn(chosen, budget_s), chosen, jobs=1)
    lines = capsys.readouterr().out.splitlines()
    return green, [
        line.partition(":")[0] for line in lines if line.startswith(("run ", "green", "skip", "left", "failed"))
    ]


@pytest.mark.matrix
def test_green_suites_are_recorded_and_then_skipped(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the suite whose turn it is runs again."""
    green, lines = verify(suites, capsys)
    assert green
    assert sorted(lines) == ["green  contract-a", "green  contract-b", "run    contract-a", "run    contract-b"]
    assert verify(suites, capsys, budget_s=0.0) == (True, ["skip   contract-a", "skip   contract-b"])
    green, lines = verify(suites, capsys)
    assert green
    assert [line.split()[0] for line in lines] == ["run", "green", "skip"]


@pytest.mark.matrix
def test_a_failed_suite_keeps_its_old_record(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suite stays stale, and the call fails."""
    verify(suites, capsys)
    before = (suites / "verify" / "results" / "contract-a.json").read_bytes()
    write(
        suites, "tests/contract/test_a.py", "import pytest\n\n\n@pytest.mark.servers\ndef test_a():\n    assert False\n"
    )
    green, lines = verify(suites, capsys)
    assert not green
    assert lines[:2] == ["run    contract-a", "failed contract-a"]
    assert lines[-1] == "failed"
    assert (suites / "verify" / "results" / "contract-a.json").read_bytes() == before


@pytest.mark.matrix
def test_a_suite_whose_core_changed_is_left_without_budget(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suite is printed, and stays stale."""
    write(suites, "heron-core/pyproject.toml", '[project]\nname = "heron-core"\n')
    write(suites, "heron-core/src/heron_x.py", "")
    path = "tests/contract/test_a.py"
    write(suites, path, (suites / path).read_text(encoding="utf-8") + "    assert 'heron_x.main'\n")
    verify(suites, capsys)
    write(suites, "heron-core/src/heron_x.py", "x = 1\n")
    assert verify(suites, capsys, budget_s=0.0) == (True, ["left   contract-a", "skip   contract-b"])
    green, lines = verify(suites, capsys)
    assert green
    assert lines[:2] == ["run    contract-a", "green  contract-a"]


@pytest.mark.matrix
def test_a_suite_whose_inputs_change_while_it_runs_is_not_recorded(
    suites: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tested version is unknown."""
    text = "import pathlib, pytest\n\n\n@pytest.mark.servers\ndef test_a():\n"
    write(suites, "tests/contract/test_a.py", text + "    pathlib.Path(__file__).open('a').write('x = 1\\n')\n")
    green, _ = verify(suites, capsys)
    assert green
    assert [path.name for path in (suites / "verify" / "results").iterdir()] == ["contract-b.json"]


@pytest.mark.matrix
def test_a_release_waits_for_all_suites(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suites that it waits for are named."""
    assert not Verification(suites).print_release(Verification(suites).chosen(()))
    out = capsys.readouterr().out
    assert "not run for the present code: contract-a: no green run is recorded" in out
    assert out.splitlines()[-1] == "2 of 2 suites not run for the present code, 2 never: ./dev verify -- --list"
    verify(suites, capsys)
    assert Verification(suites).print_release(Verification(suites).chosen(()))
    assert capsys.readouterr().out == "0 of 2 suites not run for the present code\n"


def git(root: Path, *arguments: str, text: str = "") -> str:
    settings = ("-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false")
    command = ["git", *settings, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, input=text).stdout.strip()


def commit_nothing(root: Path, times: int) -> None:
    one = "commit refs/heads/main\ncommitter x <x> 0 +0000\ndata 0\n"
    git(root, "fast-import", "--quiet", text=f"{one}from refs/heads/main^0\n{one * (times - 1)}")


@pytest.mark.matrix
def test_a_suite_that_cannot_run_within_fifty_commits_fails_the_call(
    suites: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commits since its inputs changed count, not those since it ran."""
    (suites / "tests" / "contract" / "test_b.py").unlink()
    git(suites, "init", "-q", "-b", "main")
    git(suites, "add", ".")
    git(suites, "commit", "-qm", "first")
    verify(suites, capsys)
    recorded = json.loads((suites / "verify" / "results" / "contract-a.json").read_text(encoding="utf-8"))
    assert recorded["revision"] == git(suites, "rev-parse", "HEAD")
    commit_nothing(suites, 60)
    path = "tests/contract/test_a.py"
    write(suites, path, (suites / path).read_text(encoding="utf-8") + "    assert True\n")
    git(suites, "commit", "-qam", "change")
    assert verify(suites, capsys, budget_s=0.0)[0]
    commit_nothing(suites, 50)
    (each,) = Verification(suites).chosen(())
    assert each.behind == 51
    assert not verify(suites, capsys, budget_s=0.0)[0]


@pytest.mark.matrix  # the same
def test_an_unknown_suite_is_refused_with_the_known_ones() -> None:
    """A misspelt name must not pass without a run."""
    refused = CliRunner().invoke(main, ["uploader-s4"])
    assert refused.exit_code == 2
    assert "no suite 'uploader-s4'; known: " in refused.output

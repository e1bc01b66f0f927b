"""Profiles: where they are found, what they may say, and how they refuse the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from heron.errors import ConfigError
from heron.kernel.profiles import Profile, load_profile, profile_names
from heron.spi.driver import DriverRef

MINIMAL = """
scheduler: {driver: local}
statemgr: {driver: localfs, root: /state}
uploader: {driver: localfs}
packing: {driver: roundrobin}
metricsink: []
"""


def resolve(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
    return DriverRef(family, name, f"m:{name}", dict(options))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def load(tmp_path: Path, text: str, **settings: str) -> Profile:
    folder = tmp_path / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / "mine.yaml").write_text(text)
    return load_profile("mine", resolve, config_path=folder, overrides=settings, environ={"TEAM": "red"})


def test_shipped_profile_serves_one_machine(home: Path) -> None:
    """What a person gets who says nothing at all."""
    profile = load_profile("local", resolve)
    drivers = [profile.scheduler.name, profile.statemgr.name, profile.uploader.name, profile.packing.name]
    assert drivers == ["local", "localfs", "localfs", "roundrobin"]
    assert profile.statemgr.options == {"root": f"{home}/.heron/state"}
    assert profile.uploader.options == {"root": f"{home}/.heron/packages"}
    assert (profile.log_dir, profile.run_dir) == (f"{home}/.heron/logs", "")
    assert [each.options for each in profile.sinks("/logs/words-1")] == [{"directory": "/logs/words-1"}]


def test_own_profile_hides_the_shipped_one_and_the_given_folder_both(tmp_path: Path, home: Path) -> None:
    """The search order is what lets a person change one thing without touching the installation."""
    own = home / ".heron" / "profiles"
    own.mkdir(parents=True)
    (own / "local.yaml").write_text(MINIMAL)
    given = tmp_path / "given"
    given.mkdir()
    assert load_profile("local", resolve).source == own / "local.yaml"
    assert load_profile("local", resolve, config_path=given).source == own / "local.yaml"
    (given / "local.yaml").write_text(MINIMAL)
    assert load_profile("local", resolve, config_path=given).source == given / "local.yaml"
    assert profile_names(given)["local"] == given / "local.yaml"


def test_engine_and_run_sections_are_read(tmp_path: Path, home: Path) -> None:
    """Engine keys have dots of their own and stand flat in their section."""
    text = MINIMAL + "engine:\n  heron.instance.batch.rows: 7\nrun:\n  log_dir: ~/logs\n  run_dir: /r/${env:TEAM}\n"
    profile = load(tmp_path, text)
    assert profile.engine.batch_rows == 7
    assert (profile.log_dir, profile.run_dir) == (f"{home}/logs", "/r/red")


def test_set_changes_one_key(tmp_path: Path) -> None:
    """A value on the command line is read as YAML, so a number is a number."""
    profile = load(
        tmp_path,
        MINIMAL,
        **{
            "engine.heron.instance.batch.rows": "9",
            "statemgr.root": "/other",
            "run.log_dir": "/l",
            "packing.driver": "ffd",
        },
    )
    assert profile.engine.batch_rows == 9
    assert (profile.statemgr.options, profile.log_dir, profile.packing.name) == ({"root": "/other"}, "/l", "ffd")


def test_environment_is_read_everywhere_in_a_value(tmp_path: Path) -> None:
    """Also inside lists and nested sections of a driver."""
    text = MINIMAL.replace("root: /state", "root: '/s/${env:TEAM}/x', deep: {a: ['${env:TEAM}']}")
    assert load(tmp_path, text).statemgr.options == {"root": "/s/red/x", "deep": {"a": ["red"]}}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("packing:", "packin:", r"mine\.yaml: packin: unknown section \(nearest: 'packing'\); known: 'engine', "),
        ("packing: {driver: roundrobin}", "", r"mine\.yaml: packing: missing; say `packing: \{driver: NAME\}`"),
        ("{driver: roundrobin}", "{}", r"packing\.driver: None is not the name of a driver"),
        ("{driver: roundrobin}", "roundrobin", r"packing: 'roundrobin' is not a section"),
        ("metricsink: []", "metricsink: {driver: file}", r"metricsink: not a list"),
        ("metricsink: []", "metricsink: [file]", r"metricsink\[0\]: 'file' is not a section"),
        ("metricsink: []", "metricsink: []\nrun: {logdir: x}", r"run\.logdir: unknown key \(nearest: 'log_dir'\)"),
        ("metricsink: []", "metricsink: []\nrun: {log_dir: 3}", r"run\.log_dir: 3 is not a path"),
        ("metricsink: []", "metricsink: []\nengine: {heron.heartbeat: 1}", r"engine\.heron\.heartbeat: unknown key"),
        ("/state", "'${env:NOBODY}'", r"statemgr\.root: the environment has no 'NOBODY'"),
        ("/state", "'${TEAM}'", r"statemgr\.root: \$\{TEAM\} is not known; known: '\$\{env:NAME\}'"),
        ("/state", "'${run:logs}'", r"statemgr\.root: \$\{run:logs\} is not known"),
        ("metricsink: []", "metricsink: []\nmetricsink: []", r"mine\.yaml: line 7: key 'metricsink' stands twice"),
        ("metricsink: []", "metricsink: [", r"mine\.yaml: line \d+:"),
        ("metricsink: []", "metricsink: []\n3: x", r"mine\.yaml: line 7: key 3 is not text"),
        (MINIMAL, "just text", r"mine\.yaml: 'just text' is not a section"),
        (MINIMAL, "", r"mine\.yaml: None is not a section"),
    ],
)
def test_mistake_is_named_with_its_path(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A profile is written by hand; each mistake leads to its line."""
    assert old in MINIMAL
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, MINIMAL.replace(old, new))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("enginee.x", r"--set enginee\.x: unknown section 'enginee' \(nearest: 'engine'\)"),
        ("engine", r"--set engine: not of the form"),
        ("metricsink.directory", r"--set metricsink\.directory: a profile has a list"),
        ("engine.nokey", r"engine\.nokey: unknown key"),
    ],
)
def test_mistaken_set_is_refused(tmp_path: Path, path: str, message: str) -> None:
    """The command line makes the same mistakes as the file."""
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, MINIMAL, **{path: "1"})


def test_value_of_set_that_is_not_yaml_is_refused(tmp_path: Path) -> None:
    """The message names the setting, not a file."""
    with pytest.raises(ConfigError, match=r"--set statemgr\.root: line 1:"):
        load(tmp_path, MINIMAL, **{"statemgr.root": "[1"})


@pytest.mark.parametrize("name", ["nothing", "../local", "lokal", ""])
def test_unknown_profile_is_told_with_those_known(name: str) -> None:
    """A name is never a path: a profile outside the search order is given by its folder."""
    with pytest.raises(ConfigError, match=r"no profile .*; known: 'local'"):
        load_profile(name, resolve)


def test_config_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    """Falling back to the shipped profile would run something else than was asked for."""
    with pytest.raises(ConfigError, match=r"--config-path: .*no-such-folder"):
        load_profile("local", resolve, config_path=tmp_path / "no-such-folder")


def test_unreadable_profile_is_named(tmp_path: Path) -> None:
    """A folder named like a profile, or bytes that are no text."""
    (tmp_path / "a.yaml").mkdir()
    (tmp_path / "b.yaml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"a\.yaml: cannot be read"):
        load_profile("a", resolve, config_path=tmp_path)
    with pytest.raises(ConfigError, match=r"b\.yaml: not UTF-8 at byte 0"):
        load_profile("b", resolve, config_path=tmp_path)

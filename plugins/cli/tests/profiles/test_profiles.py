"""Profiles: the search order, `extends`, the sections and values, and the errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import ConfigError, PluginError
from heron_cli.profiles import Resolver, load_profile, profile_entries, profile_names, read_profile

if TYPE_CHECKING:
    from conftest import Reading

MINIMAL = """
scheduler: {driver: local}
statemgr: {driver: localfs, root: /state}
uploader: {driver: localfs}
packing: {driver: roundrobin}
metricsink: []
"""
LOCAL = MINIMAL.replace("metricsink: []", "metricsink: [{driver: file, directory: '${run:logs}'}]")


@pytest.mark.parametrize("option", ["token: s3cret", "root: '${file:SECRET}'"])
def test_a_store_of_views_has_no_secret(reading: Reading, home: Path, option: str) -> None:
    """Its options travel with topologies; a path of a file does no harm."""
    secret = home / "secret"
    secret.write_text("s3cret")
    secret.chmod(0o600)
    option = option.replace("SECRET", str(secret))
    (problem,) = reading.problems(LOCAL + f"store: {{driver: any, {option}}}\n")
    assert "store: its options have a secret" in problem
    assert "password_file" in problem
    assert "s3cret" not in problem


def test_a_profile_may_name_a_store(reading: Reading) -> None:
    store = reading.load(LOCAL + "store: {driver: any, root: /views}\n").choices.store
    assert store is not None
    assert (store.name, store.options) == ("any", {"root": "/views"})
    assert reading.load(LOCAL).choices.store is None


def test_engine_and_run_sections_are_read(reading: Reading, home: Path) -> None:
    """Engine keys contain dots; their section is not nested."""
    text = MINIMAL + "engine:\n  heron.instance.batch.rows: 7\nrun:\n  log_dir: ~/logs\n  run_dir: /r/${env:TEAM}\n"
    profile = reading.load(text)
    assert profile.engine.batch_rows == 7
    assert (profile.log_dir, profile.run_dir) == (f"{home}/logs", "/r/red")


def test_missing_settings_have_defaults(reading: Reading, home: Path) -> None:
    """A profile of five lines is complete."""
    profile = reading.load(MINIMAL)
    assert (profile.log_dir, profile.run_dir, profile.metricsinks) == (f"{home}/.heron/logs", "", ())
    assert profile.secret_variables == ()


def test_the_checkpoint_store_is_optional(reading: Reading) -> None:
    """Only topologies with checkpoints use it. Its secrets are hidden like those of the others."""
    assert reading.load(MINIMAL).checkpoint is None
    profile = reading.load(MINIMAL + "checkpoint: {driver: localfs}")
    assert profile.checkpoint is not None
    assert (profile.checkpoint.family, profile.checkpoint.name) == ("checkpoint", "localfs")
    assert [each.family for each in profile.singles][-1] == "checkpoint"


def test_a_checkpoint_section_without_a_driver_is_a_problem(reading: Reading) -> None:
    """An optional section is as strict as the others."""
    (problem,) = reading.problems(MINIMAL + "checkpoint: {root: /checkpoints}")
    assert "mine.yaml:7: checkpoint.driver: None is not the name of a driver" in problem


def test_logs_of_a_run_are_filled_into_its_sinks(reading: Reading) -> None:
    """The folder is known only when there is a run."""
    assert [each.options for each in reading.load(LOCAL).sinks("/logs/words-1")] == [{"directory": "/logs/words-1"}]


def test_a_users_profile_hides_the_shipped_one_and_config_path_hides_both(reading: Reading, home: Path) -> None:
    """A user can change a profile without changing the installation."""
    own = home / ".heron" / "profiles"
    own.mkdir(parents=True)
    (own / "local.yaml").write_text(MINIMAL)
    assert load_profile("local", reading.resolve).source == own / "local.yaml"
    assert load_profile("local", reading.resolve, config_path=reading.folder).source == own / "local.yaml"
    given = reading.write(MINIMAL, "local")
    assert load_profile("local", reading.resolve, config_path=reading.folder).source == given
    assert profile_names(reading.folder)["local"] == given


def test_shipped_profiles_read(home: Path) -> None:
    """Each shipped profile loads when the variables that it needs are set."""
    assert home.is_dir()
    found = {each.name: each for each in profile_entries()}
    assert list(found) == [
        "aurora",
        "kubernetes",
        "local",
        "nomad",
        "production",
        "slurm",
        "spark",
        "spark-batch",
        "spark-streaming",
        "testing",
        "yarn",
    ]
    assert all(each.shipped and each.about and not each.error for each in found.values())
    assert found["testing"].extends == ("local",)


def test_profile_extends_another(reading: Reading) -> None:
    """Sections are merged by key. A section with another driver is replaced, because options belong to a driver."""
    reading.write(LOCAL + "engine: {heron.heartbeat.s: 2, heron.silence.s: 9}", "base")
    profile = reading.load("extends: base\nstatemgr: {port: 99}\nengine: {heron.heartbeat.s: 3}\n")
    assert profile.statemgr.options == {"root": "/state", "port": 99}
    assert (profile.engine.heartbeat_s, profile.engine.silence_s) == (3.0, 9.0)
    assert [each.name for each in profile.metricsinks] == ["file"]
    profile = reading.load("extends: base\nstatemgr: {driver: zookeeper, port: 99}\nmetricsink: []\n")
    assert (profile.statemgr.name, profile.statemgr.options, profile.metricsinks) == ("zookeeper", {"port": 99}, ())


def test_profile_that_extends_its_own_name_changes_the_one_it_hides(reading: Reading, home: Path) -> None:
    """A user changes one line instead of copying the shipped profile."""
    own = home / ".heron" / "profiles"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(MINIMAL)
    profile = reading.load("extends: mine\nstatemgr: {port: 7}")
    assert profile.statemgr.options == {"root": "/state", "port": 7}


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("mine", r"mine\.yaml:1: extends: mine -> mine is a cycle"),
        ("othr", r"mine\.yaml:1: extends: no profile 'othr' \(nearest: 'other'\); known: 'aurora', 'kubernetes', "),
        ("other", r"other\.yaml:1: extends: mine -> other -> mine is a cycle"),
        ("[local]", r"mine\.yaml:1: extends: not the name of a profile"),
    ],
)
def test_wrong_base_is_refused(reading: Reading, extends: str, message: str) -> None:
    """A cycle is found before it is followed forever."""
    reading.write("extends: mine", "other")
    with pytest.raises(ConfigError, match=message):
        reading.load(f"extends: {extends}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("packing:", "packin:", "mine.yaml:5: packin: unknown section (nearest: 'packing'); known: 'checkpoint', "),
        ("packing: {driver: roundrobin}", "", "mine.yaml: packing: missing; write `packing: {driver: NAME}`"),
        ("{driver: roundrobin}", "{}", "mine.yaml:5: packing.driver: None is not the name of a driver"),
        ("{driver: roundrobin}", "{driver: 3}", "mine.yaml:5: packing.driver: 3 is not the name of a driver"),
        ("{driver: roundrobin}", "roundrobin", "mine.yaml:5: packing: not a section of keys and values"),
        ("metricsink: []", "metricsink: {driver: file}", "mine.yaml:6: metricsink: not a list; write"),
        ("metricsink: []", "metricsink: [file]", "mine.yaml:6: metricsink[0]: 'file' is not a section"),
        ("metricsink: []", "metricsink: [{driver: file}]", "mine.yaml:6: metricsink[0].directory: missing"),
        ("metricsink: []", "metricsink:", "mine.yaml: metricsink: missing; write"),
        ("[]", "[]\nrun: {logdir: x}", "mine.yaml:7: run.logdir: unknown key (nearest: 'log_dir'); known: "),
        ("[]", "[]\nrun: {log_dir: 3}", "mine.yaml:7: run.log_dir: 3 is not a path"),
        ("[]", "[]\nengine: {heron.heartbeat: 1}", "mine.yaml:7: engine.heron.heartbeat: unknown key (nearest: "),
        ("[]", "[]\nengine: {heron.heartbeat.s: soon}", "mine.yaml:7: engine.heron.heartbeat.s: 'soon' is not of type"),
        ("[]", "[]\nengine: {heron.tuple.max.bytes: 1}", "heron.tuple.max.bytes: 1 bytes is below the minimum"),
        ("[]", "[]\nengine: {heron.stmgr.low.watermark.bytes: 9000000}", "is not below heron.stmgr.high"),
        ("root: /state", "rot: /state", "mine.yaml:3: statemgr.rot: unknown key (nearest: 'root'); known: 'account', "),
        ("root: /state", "port: high", "mine.yaml:3: statemgr.port: expected `int`, got `str`; it is 'high'"),
        ("root: /state", "port: 70000", "mine.yaml:3: statemgr.port: expected `int` <= 65535; it is 70000"),
        ("root: /state", "account: {usr: x}", "mine.yaml:3: statemgr.account.usr: unknown key (nearest: 'user')"),
        ("root: /state", "hosts: [a, 3]", "mine.yaml:3: statemgr.hosts[1]: expected `str`, got `int`; it is 3"),
        ("driver: localfs, root", "driver: absent, root", "statemgr.driver: no statemgr driver 'absent' is installed"),
    ],
)
def test_mistake_is_named_with_its_place(reading: Reading, old: str, new: str, message: str) -> None:
    """Each error names the line of the mistake."""
    assert old in MINIMAL
    problems = reading.problems(MINIMAL.replace(old, new))
    assert any(message in each for each in problems), problems


def test_all_mistakes_are_reported_together(reading: Reading) -> None:
    """A user can correct all mistakes after one check."""
    text = MINIMAL.replace("root: /state", "rot: 1, port: x, token: '${env:NOBODY}'").replace("packing", "packin")
    text += "engine: {heron.a: 1, heron.b: 2}\nrun: {c: d}\n"
    problems = "\n".join(reading.problems(text, {"HERON__X": "1"}, **{"engine.y": "1"}))
    paths = ("packin", "statemgr.rot", "statemgr.port", "statemgr.token", "engine.heron.a", "engine.heron.b", "run.c")
    for path in (*(f"{each}: " for each in paths), "HERON__X: ", "--set engine.y: "):
        assert path in problems
    with pytest.raises(ConfigError, match=r"\(and \d+ more: `heron profiles check mine`\)"):
        reading.load(text)


def test_missing_drivers_are_named_with_their_distributions(reading: Reading) -> None:
    """The remedy is one `pip install` for all."""
    reading.write(MINIMAL.replace("localfs", "absent"))
    found = read_profile("mine", reading.resolve, config_path=reading.folder, environ={})
    assert [each.install for each in found.problems] == ["heron-statemgr-absent", "heron-uploader-absent"]
    with pytest.raises(PluginError, match=r"statemgr\.driver: no statemgr driver .* \(and 1 more"):
        load_profile("mine", reading.resolve, config_path=reading.folder, environ={})


@pytest.mark.parametrize("name", ["nothing", "../local", "lokal", "", "local.yaml"])
def test_the_error_for_an_unknown_profile_lists_the_known_ones(name: str, resolve: Resolver) -> None:
    """A name is never a path; `--config-path` gives the folder of a profile elsewhere."""
    with pytest.raises(ConfigError, match=r"no profile .*; known: 'aurora', 'kubernetes', 'local'"):
        load_profile(name, resolve)


def test_config_path_that_is_not_a_folder_is_refused(tmp_path: Path, resolve: Resolver) -> None:
    """The shipped profile must not be used instead."""
    with pytest.raises(ConfigError, match=r"--config-path: .*no-such-folder"):
        load_profile("local", resolve, config_path=tmp_path / "no-such-folder")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"mine\.yaml: is empty; add sections"),
        ("# nothing\n", r"mine\.yaml: is empty"),
        ("just text", r"mine\.yaml: 'just text' is not a profile"),
        ("- driver: local", r"mine\.yaml: a list is not a profile; it consists of sections"),
    ],
)
def test_file_without_sections_is_refused(reading: Reading, text: str, message: str) -> None:
    """An interrupted editor may leave an empty file."""
    with pytest.raises(ConfigError, match=message):
        reading.load(text)


def test_broken_profile_is_listed_with_the_reason(reading: Reading) -> None:
    """The other profiles are listed too."""
    reading.write("a: [", "broken")
    found = {each.name: each for each in profile_entries(reading.folder)}
    assert "broken.yaml: line 1" in found["broken"].error
    assert not found["local"].error

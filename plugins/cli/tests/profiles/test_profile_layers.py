"""The layers above the file, the environment and the command line, and their origins in a listing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from heron.errors import ConfigError
from heron.spi.driver import DriverRef
from heron_cli.profiles import list_settings

if TYPE_CHECKING:
    from conftest import Reading

TEXT = """
scheduler: {driver: local}
statemgr: {driver: localfs, root: /state, account: {user: u}}
uploader: {driver: localfs}
packing: {driver: roundrobin}
metricsink:
  - {driver: file, directory: /one}
  - {driver: graph-ite, directory: /two}
"""


def test_set_changes_one_key(reading: Reading) -> None:
    """A value on the command line is read as YAML, so a number is a number."""
    settings = {"engine.heron.instance.batch.rows": "9", "statemgr.port": "7", "run.log_dir": "/l"}
    profile = reading.load(TEXT, **settings, **{"statemgr.account.tries": "5", "statemgr.hosts": "[a, b]"})
    assert (profile.engine.batch_rows, profile.log_dir) == (9, "/l")
    assert profile.statemgr.options == {
        "root": "/state",
        "account": {"user": "u", "tries": 5},
        "port": 7,
        "hosts": ["a", "b"],
    }


def test_variables_change_the_same_keys(reading: Reading) -> None:
    """Every shell accepts names of capitals, `__` between steps and `_` for a dot."""
    environ = {
        "HERON__ENGINE__HERON_INSTANCE_BATCH_ROWS": "9",
        "HERON__STATEMGR__PORT": "7",
        "HERON__STATEMGR__ACCOUNT__TRIES": "5",
        "HERON__RUN__LOG_DIR": "/l",
        "HERON_OTHER": "is no business of a profile",
    }
    profile = reading.load(TEXT, environ)
    assert (profile.engine.batch_rows, profile.log_dir) == (9, "/l")
    assert profile.statemgr.options == {"root": "/state", "account": {"user": "u", "tries": 5}, "port": 7}


def test_the_command_line_overrides_the_environment_which_overrides_the_file(reading: Reading) -> None:
    """The layer nearest to the command wins."""
    environ = {"HERON__STATEMGR__ROOT": "/environment"}
    assert reading.load(TEXT, environ).statemgr.options["root"] == "/environment"
    assert reading.load(TEXT, environ, **{"statemgr.root": "/set"}).statemgr.options["root"] == "/set"


@pytest.mark.parametrize("value", ["12345", "true", "null", "[x", "a: b", "@x", "1e3", "", "2026-01-01"])
def test_a_setting_of_type_text_is_not_read_as_yaml(reading: Reading, value: str) -> None:
    """A password may consist of digits."""
    assert reading.load(TEXT, {"HERON__STATEMGR__TOKEN": value}).statemgr.options["token"] == value


def test_another_driver_replaces_its_section(reading: Reading) -> None:
    """The options in the file belong to the driver that is no longer used."""
    profile = reading.load(TEXT, **{"statemgr.port": "7", "statemgr.driver": "zookeeper"})
    assert (profile.statemgr.name, profile.statemgr.options) == ("zookeeper", {"port": 7})
    profile = reading.load(TEXT, {"HERON__STATEMGR__DRIVER": "localfs"})
    assert profile.statemgr.options["root"] == "/state"


def test_sink_is_named_by_its_driver_or_position(reading: Reading) -> None:
    """One sink of the list can be changed."""
    environ = {"HERON__METRICSINK__FILE__MAX_BYTES": "1", "HERON__METRICSINK__GRAPH_ITE__MAX_BYTES": "2"}
    settings = {"metricsink.1.directory": "/new", "metricsink.file.directory": "/newer"}
    profile = reading.load(TEXT, environ, **settings)
    assert [each.options for each in profile.metricsinks] == [
        {"directory": "/newer", "max_bytes": 1},
        {"directory": "/new", "max_bytes": 2},
    ]


def test_list_of_sinks_can_be_given_whole(reading: Reading) -> None:
    """One run can have other sinks, or none."""
    assert reading.load(TEXT, metricsink="[]").metricsinks == ()
    profile = reading.load(TEXT, metricsink="[{driver: other, directory: /x}]", **{"metricsink.other.max_bytes": "3"})
    assert [(each.name, each.options["max_bytes"]) for each in profile.metricsinks] == [("other", 3)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HERON__STATMGR__ROOT", "HERON__STATMGR__ROOT: unknown section 'STATMGR' (nearest: 'HERON__STATEMGR')"),
        ("HERON__statemgr__root", "HERON__statemgr__root: unknown section 'statemgr' (nearest: 'HERON__STATEMGR')"),
        ("HERON__STATEMGR__ROT", "HERON__STATEMGR__ROT: statemgr.rot: unknown key (nearest: 'root')"),
        ("HERON__STATEMGR__PORT", "HERON__STATEMGR__PORT: statemgr.port: expected `int`, got `str`; it is 'x'"),
        ("HERON__ENGINE__HERON_HEARTBEAT", "unknown setting (nearest: 'HERON__ENGINE__HERON_HEARTBEAT_S')"),
        ("HERON__RUN__LOGS", "HERON__RUN__LOGS: unknown setting (nearest: 'HERON__RUN__LOG_DIR')"),
        ("HERON__", "HERON__: unknown section ''"),
        ("HERON__STATEMGR", "HERON__STATEMGR: not of the form HERON__SECTION__KEY"),
        ("HERON__STATEMGR____ROOT", "HERON__STATEMGR____ROOT: not of the form HERON__SECTION__KEY"),
        ("HERON__METRICSINK__FIL__DIRECTORY", "no sink 'fil' in the profile (nearest: 'file'); known: 'file', "),
        ("HERON__METRICSINK__2__DIRECTORY", "no sink 2; the profile has 2, counted from 0"),
        ("HERON__METRICSINK__FILE", "a sink is a section; name one of its keys"),
        ("HERON__METRICSINK", "not a list of sinks; name one sink, as in `metricsink.file.KEY`"),
    ],
)
def test_unknown_variable_is_refused(reading: Reading, name: str, message: str) -> None:
    """An ignored variable would be a setting without effect."""
    (problem,) = reading.problems(TEXT, {name: "x"})
    assert message in problem


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("enginee.x", "--set enginee.x: unknown section 'enginee' (nearest: 'engine')"),
        ("engine", "--set engine: not of the form SECTION.KEY=VALUE"),
        ("metricsink", "--set metricsink: not a list of sinks"),
        ("metricsink.directory", "--set metricsink.directory: no sink 'directory' in the profile"),
        ("statemgr..root", "--set statemgr..root: not of the form SECTION.KEY=VALUE"),
        ("statemgr.hosts", "--set statemgr.hosts: expected `list`, got `int`; it is 1"),
        ("statemgr.account", "--set statemgr.account: expected `section | null`, got `int`; it is 1"),
        ("engine.nokey", "--set engine.nokey: unknown key"),
        ("statemgr.rot", "--set statemgr.rot: unknown key (nearest: 'root')"),
    ],
)
def test_mistaken_set_is_refused(reading: Reading, path: str, message: str) -> None:
    """The checks are those of the file."""
    (problem,) = reading.problems(TEXT, **{path: "1"})
    assert problem.startswith(message)


def test_two_sinks_of_one_driver_are_named_by_position(reading: Reading) -> None:
    """The name of the driver is ambiguous."""
    text = TEXT.replace("graph-ite", "file")
    (problem,) = reading.problems(text, **{"metricsink.file.max_bytes": "1"})
    assert "2 sinks have the driver 'file'; name one by its position, metricsink.0 or another" in problem


def test_listing_has_the_origin_of_each_value(reading: Reading) -> None:
    """A user can find the file, variable or option that gave a value."""
    reading.write("extends: base\nstatemgr:\n  root: /mine")
    reading.write(TEXT, "base")
    listed = list_settings(
        "mine",
        reading.resolve,
        config_path=reading.folder,
        overrides={"statemgr.hosts": "[a]", "engine.heron.silence.s": "5"},
        environ={"HERON__STATEMGR__PORT": "7"},
    )
    origins = {each.path: (each.value, each.origin.replace(f"{reading.folder}/", "")) for each in listed.settings}
    assert origins["statemgr.driver"] == ("localfs", "base.yaml:3")
    assert origins["statemgr.root"] == ("/mine", "mine.yaml:3")
    assert origins["statemgr.port"] == (7, "HERON__STATEMGR__PORT")
    assert origins["statemgr.hosts[0]"] == ("a", "--set statemgr.hosts")
    assert origins["metricsink[1].max_bytes"] == (10, "default of metricsink driver 'graph-ite'")
    assert origins["engine.heron.silence.s"] == (5, "--set engine.heron.silence.s")
    assert origins["engine.heron.heartbeat.s"] == (1.0, "default of the engine")
    assert origins["run.run_dir"] == ("", "default of the engine")
    assert [each.name for each in listed.files] == ["mine.yaml", "base.yaml"]
    assert {each.layer for each in listed.settings} == {"default", "file", "environment", "command"}


def test_listing_of_a_driver_that_is_not_installed_has_the_written_values(reading: Reading) -> None:
    """A profile for another machine can be listed; only its driver declares which values are secrets."""
    reading.write(TEXT.replace("driver: localfs, root", "driver: absent, token: '${env:T}', pin: 1234, root"))
    environ = {"HERON__STATEMGR__PASSWORD": "hunter22"}
    listed = list_settings("mine", reading.resolve, config_path=reading.folder, environ=environ)
    assert {each.path: each.value for each in listed.settings if each.path.startswith("statemgr")} == {
        "statemgr.driver": "absent",
        "statemgr.token": "${env:T}",
        "statemgr.pin": "(hidden: unknown key)",
        "statemgr.root": "(hidden: unknown key)",
        "statemgr.account.user": "(hidden: unknown key)",
        "statemgr.password": "(hidden: unknown key)",
    }


def test_listing_shows_the_values_of_shipped_profiles(reading: Reading) -> None:
    """A shipped profile has no secrets, whether its driver is installed or not."""

    def resolve(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        return reading.resolve(family, "absent" if family == "statemgr" else name, options)

    listed = list_settings("production", resolve, config_path=reading.folder, environ={})
    assert {each.path: each.value for each in listed.settings}["statemgr.root"] == "/heron"


def test_listing_of_a_profile_with_unknown_sections_is_refused(reading: Reading) -> None:
    """It would show values without effect."""
    reading.write(TEXT + "metricsinks: []")
    with pytest.raises(ConfigError, match="unknown section"):
        list_settings("mine", reading.resolve, config_path=reading.folder, environ={})

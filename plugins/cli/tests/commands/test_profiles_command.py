"""`heron profiles`: list, show and check, for people and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heron_cli.main import heron
from heron_cli.topologies.environment import ProfileChoice, find_profile, without_secrets


def command(*arguments: str) -> Result:
    """Call `heron profiles`."""
    return CliRunner().invoke(heron, ["profiles", *arguments])


def test_list_has_the_shipped_profiles_and_those_of_the_user(profiles: Path) -> None:
    """The file is shown, because a profile may hide another of the same name."""
    result = command("list", "--config-path", str(profiles))
    assert result.exit_code == 0
    for name in ("here", "local", "production", "spark", "testing"):
        assert f"\n{name} " in f"\n{result.stdout}"
    assert str(profiles / "here.yaml") in result.stdout
    listed = {each["name"]: each for each in json.loads(command("list", "--json").stdout)}
    assert listed["spark"]["extends"] == ["local"]
    assert listed["local"]["shipped"] is True


def test_broken_profile_is_reported_below_the_list(profiles: Path) -> None:
    """The other profiles are listed too."""
    (profiles / "broken.yaml").write_text("a:\n\tb: 1")
    result = command("list", "--config-path", str(profiles))
    assert result.exit_code == 0
    assert "broken cannot be read: " in result.stdout
    assert "broken.yaml: line 2: a tab" in result.stdout


def test_show_prints_each_value_and_on_request_its_origin(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are those that a command would use, with defaults."""
    monkeypatch.setenv("HERON__UPLOADER__ROOT", "/by/variable")
    arguments = ("show", "here", "--config-path", str(profiles), "--set", "heron.silence.s=9")
    plain = command(*arguments).stdout
    rows = dict(line.split(maxsplit=1) for line in plain.splitlines())
    assert rows["engine.heron.silence.s"] == "9"
    assert rows["uploader.root"] == "/by/variable"
    assert rows["scheduler.stop_grace_s"] == "4.0"
    assert rows["metricsink"] == "[]"
    shown = command(*arguments, "--origin").stdout
    assert f"{profiles}/here.yaml:2" in shown
    assert "HERON__UPLOADER__ROOT" in shown
    assert "--set engine.heron.silence.s" in shown
    document = json.loads(command(*arguments, "--json").stdout)
    values = {each["path"]: each for each in document["settings"]}
    assert values["uploader.root"] == {
        "path": "uploader.root",
        "value": "/by/variable",
        "layer": "environment",
        "origin": "HERON__UPLOADER__ROOT",
    }
    assert document["files"] == [str(profiles / "here.yaml")]


def test_show_notes_that_the_profile_has_problems(profiles: Path) -> None:
    """Other commands refuse such a profile."""
    arguments = ("show", "here", "--config-path", str(profiles))
    assert command(*arguments).stderr == ""
    result = command(*arguments, "--set", "statemgr.rot=1")
    assert result.exit_code == 0
    assert result.stderr == "heron: note: here has 1 problem; see `heron profiles check here`\n"


def test_check_of_a_good_profile_names_its_drivers(profiles: Path) -> None:
    """A script uses the exit code 0."""
    result = command("check", "here", "--config-path", str(profiles))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "here: no problems"
    assert json.loads(command("check", "here", "--config-path", str(profiles), "--json").stdout)["ok"] is True


def test_check_lists_all_problems(profiles: Path) -> None:
    """The exit code is 2."""
    text = (profiles / "here.yaml").read_text().replace("root", "rot")
    (profiles / "here.yaml").write_text(f"{text}\nengin: {{}}\n")
    result = command("check", "here", "--config-path", str(profiles), "--set", "packing.instance_ran=1")
    assert result.exit_code == 2
    assert result.stdout.startswith("here: 5 problems\n")
    for message in ("scheduler.rot: unknown key", "statemgr.rot: ", "uploader.rot: ", "engin: unknown section"):
        assert message in result.stdout
    assert "--set packing.instance_ran: unknown key (nearest: 'instance_ram')" in result.stdout


def test_check_opens_the_drivers(profiles: Path) -> None:
    """Only the driver finds some mistakes, such as a folder that cannot be made."""
    arguments = ("check", "here", "--config-path", str(profiles))
    result = command(*arguments, "--set", "statemgr.root=/sys/state", "--set", "packing.instance_ram=5XB", "--json")
    assert result.exit_code == 2
    texts = [each["text"] for each in json.loads(result.stdout)["problems"]]
    assert len(texts) == 2
    assert any("/sys/state" in each for each in texts)
    assert any("packing.instance_ram: '5XB' has the unknown unit" in each for each in texts)


def test_check_asks_servers_unless_offline(profiles: Path) -> None:
    """Only the server finds a wrong password or a missing bucket; `--offline` checks the rest."""
    arguments = ("check", "here", "--config-path", str(profiles), "--set", "uploader.root=/proc/1/no-store")
    result = command(*arguments)
    assert result.exit_code == 2
    assert "/proc/1/no-store" in result.stdout
    assert command(*arguments, "--offline").exit_code == 0


@pytest.mark.parametrize(
    "key", ["scheduler.root", "statemgr.root", "uploader.root", "checkpoint.root", "metricsink.file.directory"]
)
def test_empty_folder_is_refused(home: Path, key: str) -> None:
    """An empty path would be the current folder, which an empty variable must not choose."""
    assert home.is_dir()
    result = command("check", "local", "--set", f"{key}=")
    assert result.exit_code == 2
    assert "expected `str` of length >= 1; it is ''" in result.stdout


def test_check_of_production_lists_the_missing_distributions(home: Path) -> None:
    """New users of this profile lack these distributions."""
    assert home.is_dir()
    result = command("check", "production", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    missing = {"heron-statemgr-zookeeper", "heron-uploader-hdfs", "heron-metricsink-prometheus"}
    assert set(document["install"]) <= missing  # some may be installed here
    message = command("check", "production").stdout
    assert "statemgr.password: the environment has no variable 'HERON_ZOOKEEPER_PASSWORD'" in message
    assert not document["install"] or "to add what is missing: pip install heron-" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "lokal"), "no profile 'lokal' (nearest: 'local')"),
        (("show", "local", "--set", "topology.stmgrs=2"), "is a setting of a topology, not of a profile"),
        (("show", "local", "--set", "engin.x=2"), "unknown section 'engin' (nearest: 'engine')"),
        (("list", "--config-path", "/nowhere"), "'/nowhere' is not a folder"),
    ],
)
def test_wrong_arguments_are_refused(home: Path, arguments: tuple[str, ...], message: str) -> None:
    """The error is one line, and the exit code is 2."""
    assert home.is_dir()
    result = command(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.output


def test_check_of_an_unknown_profile_is_a_problem(home: Path) -> None:
    """The JSON has the problem too, for scripts."""
    assert home.is_dir()
    result = command("check", "lokal", "--json")
    assert result.exit_code == 2
    assert "no profile 'lokal'" in json.loads(result.stdout)["problems"][0]["text"]


def test_secret_is_in_no_output_and_no_child_inherits_it(
    profiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Child processes inherit the environment."""
    monkeypatch.setenv("MY_SECRET", "hunter2-and-more")
    monkeypatch.setenv("MY_FOLDER", f"{tmp_path}/elsewhere")
    (tmp_path / "secret_packing.py").write_text(PACKING)
    info = tmp_path / "heron_packing_secretive-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: heron-packing-secretive\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[heron.packing]\nsecretive = secret_packing:SecretivePacking\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = profiles / "here.yaml"
    text = path.read_text().replace("driver: roundrobin", "driver: secretive, password: '${env:MY_SECRET}'")
    path.write_text(text.replace("run: {", "run: {run_dir: '${env:MY_FOLDER}', "))
    arguments = ("here", "--config-path", str(profiles))
    outputs = [
        command(verb, *arguments, *options).output
        for verb, options in (("show", ()), ("show", ("--json", "--origin")), ("check", ()), ("check", ("--json",)))
    ]
    assert "hunter2" not in "\n".join(outputs)
    assert "${env:MY_SECRET}" in outputs[0]
    assert "nobody opens this: (secret)" in outputs[2]  # the driver prints the secret, which is redacted
    profile = find_profile(ProfileChoice("here", profiles))
    assert profile.packing.options == {"password": "hunter2-and-more"}
    with without_secrets(profile):
        assert "MY_SECRET" not in os.environ
        assert "MY_FOLDER" in os.environ
    assert os.environ["MY_SECRET"] == "hunter2-and-more"  # the command may read the profile again


PACKING = """
import msgspec
from heron.errors import PackingError
from heron.spi.options import Secret
from heron.spi.packing import Packing

class Options(msgspec.Struct, frozen=True):
    password: Secret = ""

class SecretivePacking(Packing):
    spi_version = 2
    options_type = Options

    @classmethod
    def open(cls, options):
        raise PackingError(f"nobody opens this: {options['password']}")

    def pack(self, topology): ...
    def repack(self, current, topology, parallelism): ...
"""

"""References: their values, the errors, and secrets that stay hidden."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_cli.profiles import Profile, list_settings

if TYPE_CHECKING:
    from conftest import Reading

SECRET = "hunter2-and-more"
TEXT = """
scheduler: {driver: local}
statemgr: {driver: localfs, OPTIONS}
uploader: {driver: localfs}
packing: {driver: roundrobin}
metricsink: []
"""


def text(options: str) -> str:
    return TEXT.replace("OPTIONS", options)


def secret_file(folder: Path, content: bytes = SECRET.encode() + b"\n", mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_reference_is_read_everywhere_in_a_value(reading: Reading) -> None:
    """It may be in lists, in nested sections of a driver, and next to other text."""
    profile = reading.load(text("root: '/s/${env:TEAM}/x', hosts: ['${env:TEAM}'], account: {user: '${env:TEAM}'}"))
    assert profile.statemgr.options == {"root": "/s/red/x", "hosts": ["red"], "account": {"user": "red"}}


def test_reference_is_a_number_for_a_setting_of_type_number(reading: Reading) -> None:
    """A port may come from a variable; a setting of type text stays text, even with digits only."""
    profile = reading.load(text("port: '${env:P}', token: '${env:P}'"), {"P": "99"})
    assert profile.statemgr.options == {"port": 99, "token": "99"}


def test_two_dollars_are_one(reading: Reading) -> None:
    """An option may need a literal `${...}`."""
    assert reading.load(text("root: 'a$${env:TEAM}$b'")).statemgr.options["root"] == "a${env:TEAM}$b"


def test_file_is_read_without_its_last_line_end(reading: Reading, tmp_path: Path) -> None:
    """Editors end the last line of a file."""
    path = secret_file(tmp_path)
    assert reading.load(text(f"token: '${{file:{path}}}'")).statemgr.options["token"] == SECRET


def test_file_may_be_in_the_home_folder(reading: Reading, home: Path) -> None:
    """Several users can share one profile."""
    secret_file(home)
    assert reading.load(text("token: '${file:~/secret}'")).statemgr.options["token"] == SECRET


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NOBODY}", "the environment has no variable 'NOBODY'; set it or change the profile"),
        ("${TEAM}", "'${TEAM}' is not a reference; known: '${env:NAME}', '${file:PATH}'"),
        ("${env:}", "'${env:}' is not a reference"),
        ("${env:TEAM", "'${env:TEAM' is not a reference"),
        ("${vault:x}", "'${vault:x}' is not a reference"),
        ("${run:logs}", "'${run:logs}' is not a reference"),
        ("${env:${env:TEAM}}", "is not a reference"),
        ("${file:secret}", "the path 'secret' of a secret is relative"),
        ("${file:/no/such/file}", "the file /no/such/file cannot be read: No such file or directory"),
        ("${file:/etc}", "/etc is not a regular file"),
        ("${file:/dev/null}", "/dev/null is not a regular file"),
    ],
)
def test_reference_that_cannot_be_resolved_is_refused(reading: Reading, value: str, message: str) -> None:
    """The error has the line of the profile and the remedy."""
    problems = reading.problems(text(f"root: '{value}'"))
    assert len(problems) == 1
    assert problems[0].startswith("mine.yaml:3: statemgr.root: ")
    assert message in problems[0]


def test_reference_that_cannot_be_resolved_is_one_problem(reading: Reading) -> None:
    """The wrong type of the unresolved text is not a second problem."""
    engine = "engine: {heron.heartbeat.s: '${env:BEAT}'}"
    (problem,) = reading.problems(text("port: '${env:NOBODY}'") + engine, {"BEAT": "1"})
    assert "statemgr.port: the environment has no" in problem


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        *(
            (
                SECRET.encode(),
                mode,
                "other users can access the file {path}: its mode is "
                f"{mode:04o}, and must be 0600; `chmod 600 {{path}}`",
            )
            for mode in (0o604, 0o640, 0o620, 0o666)
        ),
        (b"", 0o600, "the file {path} is empty"),
        (b"x" * 65537, 0o600, "the file {path} is larger than 65536 bytes"),
        (b"\xff\xfe", 0o600, "the file {path} is not UTF-8 text"),
    ],
)
def test_file_that_cannot_hold_a_secret_is_refused(
    reading: Reading, tmp_path: Path, content: bytes, mode: int, message: str
) -> None:
    """A file that all users can read is not secret."""
    path = secret_file(tmp_path, content, mode)
    (problem,) = reading.problems(text(f"token: '${{file:{path}}}'"))
    assert message.format(path=path) in problem
    assert SECRET not in problem


def test_pipe_does_not_block_the_command(reading: Reading, tmp_path: Path) -> None:
    """A pipe may never get a writer."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (problem,) = reading.problems(text(f"token: '${{file:{tmp_path}/pipe}}'"))
    assert "is not a regular file" in problem


@pytest.mark.parametrize(
    "options",
    [
        "port: '${env:SECRET}'",
        "hosts: '${env:SECRET}'",
        "hosts: {a: '${env:SECRET}'}",
        "account: '${env:SECRET}'",
        "account: {user: u, tries: 'x${env:SECRET}'}",
        "root: '/x/${env:SECRET}', '${env:SECRET}': 1",
        "rot: '${env:SECRET}'",
        "token: {a: '${env:SECRET}'}",
    ],
)
def test_no_problem_shows_the_value_of_a_reference(reading: Reading, options: str) -> None:
    """Messages are copied into tickets and chats."""
    problems = reading.problems(text(options), {"SECRET": SECRET})
    assert problems
    assert SECRET not in "\n".join(problems)


def test_plain_secret_is_not_shown_either(reading: Reading) -> None:
    """A secret in the text of the profile is hidden in messages too."""
    problems = reading.problems(text(f"token: [{SECRET}], port: {SECRET}, account: {{user: 3, password: {SECRET}}}"))
    assert len(problems) == 3
    assert "hunter2" not in "\n".join(each for each in problems if ".port" not in each)


def secrets_of(profile: Profile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return profile.statemgr.secrets, profile.secret_variables


def test_secrets_are_declared_options_and_files(reading: Reading, tmp_path: Path) -> None:
    """Options that a driver declares secret and all files are hidden; other variables are shown and inherited."""
    path = secret_file(tmp_path)
    environ = {"SECRET": SECRET, "TEAM": "red-team", "HERON__STATEMGR__ACCOUNT__PASSWORD": "by-variable"}
    options = "root: '${env:TEAM}', token: 'x-${env:SECRET}', account: {user: u}"
    profile = reading.load(text(options), environ)
    assert secrets_of(profile) == (
        ("by-variable", SECRET, f"x-{SECRET}"),
        ("HERON__STATEMGR__ACCOUNT__PASSWORD", "SECRET"),
    )
    assert secrets_of(reading.load(text(f"root: '/${{file:{path}}}'"))) == ((SECRET,), ())
    assert SECRET not in repr(profile)


def test_listing_shows_references_and_resolves_none(reading: Reading) -> None:
    """The variable or file need not exist."""
    reading.write(text("root: '${env:NOBODY}', token: '${file:/nowhere}', account: {user: u, password: plain-one}"))
    listed = list_settings("mine", reading.resolve, config_path=reading.folder, environ={})
    values = {each.path: each.value for each in listed.settings}
    assert values["statemgr.root"] == "${env:NOBODY}"
    assert values["statemgr.token"] == "${file:/nowhere}"
    assert values["statemgr.account.password"] == "(secret)"


@pytest.mark.parametrize(
    "options",
    [
        f"tokn: {SECRET}",
        f"account: {{user: u, pasword: {SECRET}}}",
        "token: 'hunter2$${ss'",
        "token: 'hunter2${env:TEAM}'",
        "token: 'hunter2'",
    ],
)
def test_listing_shows_a_secret_only_when_it_is_a_whole_reference(reading: Reading, options: str) -> None:
    """A misspelt key may belong to a secret, and text next to a reference may be a part of it."""
    reading.write(text(options))
    listed = list_settings("mine", reading.resolve, config_path=reading.folder, environ={"TEAM": "red"})
    assert "hunter2" not in repr(listed.settings)


def test_text_next_to_a_reference_to_a_secret_is_in_no_message(reading: Reading) -> None:
    """A driver that repeats its options in an error would otherwise show a part of the password."""
    environ = {"TEAM": "red-team"}
    problems = reading.problems(text("token: 'hunter2${env:TEAM}', port: 'hunter2${env:TEAM}'"), environ)
    assert "(secret)" in problems[0]
    assert "hunter2" not in "\n".join(problems)

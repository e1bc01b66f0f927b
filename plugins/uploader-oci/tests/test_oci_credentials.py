"""Credentials: the profile, the configuration of Docker, credential helpers; no server."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from heron.errors import PackageError
from heron_uploader_oci.credentials import Credentials, find_credentials
from heron_uploader_oci.oci_options import OciOptions

OPTIONS = OciOptions("registry.example.org:5000/team/heron")
SECRET = "kept-to-itself"
HELPER = """#!/bin/sh
read place || true
echo "$1 $place" >> "{folder}/asked"
{body}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Docker's configuration, which is also the only one for programs."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def configure(folder: Path, **sections: object) -> None:
    (folder / "config.json").write_text(json.dumps({"HttpHeaders": {"a": "b"}, **sections}))


def helper(folder: Path, name: str, body: str) -> None:
    path = folder / f"docker-credential-{name}"
    path.write_text(HELPER.format(folder=folder, body=body))
    path.chmod(0o700)


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


def found(options: OciOptions = OPTIONS) -> Credentials:
    credentials = find_credentials(options)
    assert credentials is not None
    assert SECRET not in repr(credentials)
    return credentials


def test_the_profile_comes_first(folder: Path) -> None:
    """A profile that names a user means that one."""
    configure(folder, auths={"registry.example.org:5000": auth("other:word")})
    assert found(OciOptions(OPTIONS.repository, "me", SECRET)).username == "me"


@pytest.mark.parametrize(
    "key",
    [
        "registry.example.org:5000",
        "https://registry.example.org:5000",
        "https://registry.example.org:5000/v2/",
        "registry.example.org:5000/team",
    ],
)
def test_docker_login_is_enough(folder: Path, key: str) -> None:
    """`docker login`, podman and oras write these keys."""
    configure(folder, auths={"registry.example.org": auth("wrong:port"), key: auth(f"me:{SECRET}:with:colons")})
    credentials = found()
    assert (credentials.username, credentials.password) == ("me", f"{SECRET}:with:colons")
    assert str(folder / "config.json") in credentials.source


def test_the_hub_has_a_key_of_its_own(folder: Path) -> None:
    """Docker writes the address of an older interface."""
    configure(folder, auths={"https://index.docker.io/v1/": auth(f"me:{SECRET}")})
    assert found(OciOptions("docker.io/me/heron")).username == "me"


def test_without_configuration_there_are_none(folder: Path) -> None:
    """Many registries let everybody read."""
    assert find_credentials(OPTIONS) is None
    configure(folder, auths={"elsewhere": auth("me:word"), "registry.example.org:5000": {}})
    assert find_credentials(OPTIONS) is None


def test_an_identity_token_is_one(folder: Path) -> None:
    """Azure's registry gives such tokens; they are exchanged, not sent."""
    configure(folder, auths={"registry.example.org:5000": {**auth("me:"), "identitytoken": SECRET}})
    assert found().identity_token == SECRET


def test_a_helper_is_asked_by_stdin(folder: Path) -> None:
    """`ps` shows arguments, so the request is not there; the helper of the registry comes before that for all."""
    helper(folder, "one", f'echo \'{{"ServerURL": "x", "Username": "me", "Secret": "{SECRET}"}}\'')
    configure(folder, credHelpers={"registry.example.org:5000": "one"}, credsStore="absent")
    credentials = found()
    assert (credentials.username, credentials.password, credentials.source) == ("me", SECRET, "docker-credential-one")
    assert (folder / "asked").read_text() == "get registry.example.org:5000\n"


def test_a_helper_for_all_registries_may_have_none(folder: Path) -> None:
    """Then the entries of the file count."""
    helper(folder, "all", "echo 'credentials not found in native keychain'; exit 1")
    configure(folder, credsStore="all", auths={"registry.example.org:5000": auth(f"me:{SECRET}")})
    assert found().username == "me"
    helper(folder, "all", f'echo \'{{"Username": "<token>", "Secret": "{SECRET}"}}\'')
    assert found().identity_token == SECRET


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "docker-credential-one is not installed, but .*config.json names it"),
        (f"echo {SECRET[::-1]} is locked; exit 3", "exit code 3: .* is locked"),
        (f"echo '[\"{SECRET}\"]'", "its answer for .* is not the document"),
    ],
)
def test_a_helper_that_fails_is_named(folder: Path, body: str | None, message: str) -> None:
    """What it has printed may be a secret, unless it says that it has failed."""
    if body:
        helper(folder, "one", body)
    configure(folder, credsStore="one")
    with pytest.raises(PackageError, match=message) as caught:
        find_credentials(OPTIONS)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json: cannot be read"),
        ('{"auths": {"registry.example.org:5000": {"auth": "?"}}}', "auth is not base64"),
        ('{"auths": {"registry.example.org:5000": {"auth": "bWU="}}}', "auth has no password"),
        ('{"credsStore": "../../bin/sh"}', "cannot be the name of a credential helper"),
    ],
)
def test_a_garbled_configuration_is_named(folder: Path, text: str, message: str) -> None:
    """The message has the place, and not the value."""
    (folder / "config.json").write_text(text)
    with pytest.raises(PackageError, match=message):
        find_credentials(OPTIONS)

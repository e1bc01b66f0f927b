"""Credentials for a registry: from the profile, or from the configuration of Docker and its credential helpers.

A helper is a program ``docker-credential-NAME``. It gets the name of the registry on stdin and prints the credentials.
So no secret is in arguments.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from heron.errors import PackageError
from heron.spi.typed_values import decode_json
from heron_uploader_oci.oci_options import OciOptions

__all__ = ["HELPER_S", "Credentials", "find_credentials"]

HELPER_S = 10.0
"""The seconds that a helper has: it may ask a keychain or a cloud, and the contract allows 30 s without progress."""
_HELPER = re.compile(r"[A-Za-z0-9_.-]+")
_IDENTITY = "<token>"  # the user name by which a helper says that the secret is an identity token
_HUB = "docker.io"
_HUB_KEY = "https://index.docker.io/v1/"  # its name for Docker and for helpers
_NOT_FOUND = "credentials not found"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user with a password, or an identity token that a token server exchanges."""

    username: str
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    source: str = ""
    """Where they come from, for messages."""

    @property
    def basic(self) -> str:
        """The value of the header Authorization for Basic."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


class _Entry(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""


class _Config(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}
    credHelpers: dict[str, str] = {}  # as in Docker's file
    credsStore: str = ""


class _Answer(msgspec.Struct, frozen=True):
    Username: str
    Secret: str


def find_credentials(options: OciOptions, timeout_s: float = HELPER_S) -> Credentials | None:
    """Return the credentials for the registry; None if there are none. A helper has `timeout_s`.

    Raises:
        PackageError: when the configuration of Docker cannot be read, or a helper fails.
    """
    if options.username:
        return Credentials(options.username, options.password, source="the profile")
    folder = os.environ.get("DOCKER_CONFIG")
    path = (Path(folder) if folder else Path.home() / ".docker") / "config.json"
    config = _read(path)
    host = _HUB_KEY if options.host == _HUB else options.host
    helper = config.credHelpers.get(host) or config.credsStore
    if helper and (found := _asked(helper, host, path, timeout_s)):
        return found
    for place in _places(options):
        for key, entry in config.auths.items():
            if _plain(key) == place and (found := _stored(entry, f"{path}, entry {key!r}")):
                return found
    return None


def _places(options: OciOptions) -> Iterator[str]:
    """Yield the names that the entries may have for the repository, the most specific one first."""
    parts = options.repository.split("/")
    for length in range(len(parts), 0, -1):
        yield "/".join(parts[:length])
    if options.host == _HUB:
        yield _plain(_HUB_KEY)


def _plain(key: str) -> str:
    return re.sub(r"^https?://", "", key).removesuffix("/").removesuffix("/v1").removesuffix("/v2")


def _read(path: Path) -> _Config:
    try:
        return decode_json(path.read_bytes(), _Config)
    except FileNotFoundError:
        return _Config()
    except (OSError, msgspec.MsgspecError) as error:
        msg = f"{path}: cannot be read: {error}; correct it, or set uploader.username and uploader.password"
        raise PackageError(msg) from error


def _stored(entry: _Entry, place: str) -> Credentials | None:
    if entry.identitytoken:
        return Credentials("", identity_token=entry.identitytoken, source=place)
    if not entry.auth:
        return Credentials(entry.username, entry.password, source=place) if entry.username else None
    try:
        username, colon, password = base64.b64decode(entry.auth, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        msg = f"{place}: auth is not base64; sign in again with `docker login`"
        raise PackageError(msg) from error
    if not colon:
        msg = f"{place}: auth has no password; sign in again with `docker login`"
        raise PackageError(msg)
    return Credentials(username, password.rstrip("\0"), source=place)


def _asked(helper: str, place: str, path: Path, timeout_s: float) -> Credentials | None:
    """Ask a helper; None if it has no credentials for this name."""
    what = f"docker-credential-{helper}"
    if not _HELPER.fullmatch(helper):
        msg = f"{path}: {helper!r:.80} cannot be the name of a credential helper; correct it"
        raise PackageError(msg)
    try:
        ran = subprocess.run([what, "get"], input=place.encode(), capture_output=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "is not installed" if isinstance(error, FileNotFoundError) else "does not run"
        if isinstance(error, subprocess.TimeoutExpired):
            why = f"does not answer within {timeout_s:g} s"
        msg = f"{what} {why}, but {path} names it; correct one of the two, or set uploader.username and password"
        raise PackageError(msg) from None  # the error shows what the helper had printed
    if ran.returncode != 0:
        said = (ran.stdout + ran.stderr).decode(errors="replace").strip()
        if _NOT_FOUND in said.lower():
            return None
        msg = f"{what}: fails for {place} with exit code {ran.returncode}: {said:.200}; run `{what} get` there"
        raise PackageError(msg)
    try:
        answer = decode_json(ran.stdout, _Answer)
    except msgspec.MsgspecError:
        msg = f"{what}: its answer for {place} is not the document of a credential helper; update it"
        raise PackageError(msg) from None
    if answer.Username == _IDENTITY:
        return Credentials("", identity_token=answer.Secret, source=what)
    return Credentials(answer.Username, answer.Secret, source=what)

"""Made-up distributions and drivers on a path of their own, so that discovery and profiles are tested as they are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from heron.errors import MissingDriverError
from heron.kernel.profiles import Profile, Resolver, load_profile, read_profile
from heron.spi.driver import DriverRef


class Install(Protocol):
    """Puts a distribution with one module and one entry point on the path."""

    def __call__(self, distribution: str, group: str, name: str, source: str, attribute: str = "It") -> str:
        """Returns the name of the module."""
        ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """The distributions are gone, and their modules forgotten, after the test."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def put(distribution: str, group: str, name: str, source: str, attribute: str = "It") -> str:
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{attribute}\n")
        modules.append(module)
        importlib.invalidate_caches()
        return module

    yield put
    for module in modules:
        sys.modules.pop(module, None)


DRIVERS = """
from typing import Annotated
import msgspec
from heron.spi.driver import NoOptions
from heron.spi.options import Secret

class Account(msgspec.Struct, frozen=True):
    user: str
    password: Secret = ""
    tries: int = 3

class StateOptions(msgspec.Struct, frozen=True):
    root: str = "~/state"
    hosts: tuple[str, ...] = ()
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 2181
    account: Account | None = None
    token: Secret = ""

    def __post_init__(self) -> None:
        if self.root.startswith("$"):
            raise ValueError(f"root {self.root!r} is no path")

class SinkOptions(msgspec.Struct, frozen=True):
    directory: str
    max_bytes: int = 10

class Plain:
    options_type = NoOptions

class State:
    options_type = StateOptions

class Sink:
    options_type = SinkOptions
"""
ENTRIES = {"statemgr": "State", "metricsink": "Sink"}


@pytest.fixture
def resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    """Finds a made-up driver under any name but ``absent``; state managers and sinks have options."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "made_up_drivers.py").write_text(DRIVERS)
    monkeypatch.syspath_prepend(tmp_path / "modules")

    def find(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        if name == "absent":
            msg = f"no {family} driver {name!r} is installed"
            raise MissingDriverError(msg, f"heron-{family}-{name}")
        return DriverRef(family, name, f"made_up_drivers:{ENTRIES.get(family, 'Plain')}", dict(options))

    yield find
    sys.modules.pop("made_up_drivers", None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@dataclass(frozen=True)
class Reading:
    """Reads the profile ``mine`` of a folder, as text that the test gives."""

    folder: Path
    resolve: Resolver

    def write(self, text: str, name: str = "mine") -> Path:
        """Writes a profile."""
        path = self.folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, text: str, environ: Mapping[str, str] | None = None, /, **overrides: str) -> Profile:
        """The profile with this text."""
        self.write(text)
        return load_profile(
            "mine", self.resolve, config_path=self.folder, overrides=overrides, environ=environ or {"TEAM": "red"}
        )

    def problems(self, text: str, environ: Mapping[str, str] | None = None, /, **overrides: str) -> list[str]:
        """What is wrong with this text."""
        self.write(text)
        found = read_profile(
            "mine", self.resolve, config_path=self.folder, overrides=overrides, environ=environ or {"TEAM": "red"}
        )
        assert (found.profile is None) == bool(found.problems)
        return [each.text.replace(f"{self.folder}/", "") for each in found.problems]


@pytest.fixture
def reading(tmp_path: Path, home: Path, resolve: Resolver) -> Reading:
    """An empty folder of profiles, and the made-up drivers."""
    assert home.is_dir()
    folder = tmp_path / "profiles"
    folder.mkdir()
    return Reading(folder, resolve)

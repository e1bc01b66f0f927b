"""Fixtures: the author's file, a profile with all files in the folder of the test, a scheduler that starts nothing."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from heron.driver_kit.loading import open_driver
from heron.errors import MissingDriverError, SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, ContainerStatus, Job, JobLink, JobStatus, Scheduler, SchedulerState
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron_cli.catalog.drivers import Drivers
from heron_cli.profiles import Profile, Resolver, load_profile, read_profile
from heron_cli.topologies.environment import Environment
from heron_testing.builders.distributions import install

__all__ = ["install"]  # a fixture


@pytest.fixture(scope="session", autouse=True)
def entry_points_read_once() -> Iterator[None]:
    """Each command reads the metadata of all distributions, in a tenth of a second: here once for each `sys.path`."""
    read = importlib.metadata.entry_points
    found: dict[object, Any] = {}

    def entry_points(**wanted: str) -> object:
        times = [(each, os.stat(each).st_mtime_ns) for each in sys.path if os.path.isdir(each)]
        key = (*times, *map(id, sys.meta_path))
        if key not in found:
            found[key] = read()
        return found[key].select(**wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", entry_points)
        yield


WORDS = """
from heron.api import Bolt, Grouping, Spout, Topology, TopologyBuilder

class Lines(Spout):
    outputs = ["line"]
    def next_tuple(self):
        self.end()

class Count(Bolt):
    outputs = ["word", "count"]
    def process(self, tup):
        pass
"""

WordsFile = Callable[..., Path]


@dataclass
class IdleScheduler(Scheduler):
    """Accepts jobs and never runs them; a test sets `state`, and `status_refusal` for a status that fails."""

    spi_version = 1
    refusal: str = ""
    status_refusal: str = ""
    state: SchedulerState = SchedulerState.ABSENT
    reason: str = ""
    attempts: int = 1
    container_id: int = 1
    topology_id: str = ""
    jobs: list[Job] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Accept no options."""
        assert not options
        return cls()

    def schedule(self, job: Job) -> None:
        """Accept the job, unless the test has set `refusal`."""
        if self.refusal:
            raise SchedulerError(self.refusal)
        self.jobs.append(job)
        self.topology_id = job.topology_id
        self.state = SchedulerState.RUNNING

    def kill(self, topology: str, topology_id: str = "") -> None:
        """End the job, unless it belongs to another run."""
        if self.status(topology).of(topology_id).state is not self.state:
            return
        self.killed.append(topology)
        self.state = SchedulerState.ABSENT

    def restart(self, topology: str, container_id: int) -> None:
        """Not used in these tests."""
        raise SchedulerError(topology, container_id)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        """Not used in these tests."""
        raise SchedulerError(topology, add, remove)

    def status(self, topology: str) -> JobStatus:
        """Return what the test has set."""
        assert topology
        if self.status_refusal:
            raise SchedulerError(self.status_refusal)
        troubles = (ContainerStatus(self.container_id, False, self.attempts, self.reason),) if self.reason else ()
        return JobStatus(self.state, troubles, self.topology_id)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        """Return no links."""
        assert topology
        return ()


@pytest.fixture
def words_file(tmp_path: Path) -> WordsFile:
    """Return a function that writes the author's file: two components and the text of the test."""

    def write(rest: str, name: str = "words.py") -> Path:
        path = tmp_path / "author" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS + textwrap.dedent(rest), encoding="utf-8")
        return path

    return write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set HOME to an empty folder of the test."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def profiles(tmp_path: Path, home: Path) -> Path:
    """Return a folder with the profile ``here``, for --config-path."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    assert home.is_dir()
    (folder / "here.yaml").write_text(
        textwrap.dedent(
            f"""
            scheduler: {{driver: local, root: {tmp_path}/jobs}}
            statemgr: {{driver: localfs, root: {tmp_path}/state}}
            uploader: {{driver: localfs, root: {tmp_path}/packages}}
            packing: {{driver: roundrobin}}
            metricsink: []
            run: {{log_dir: {tmp_path}/logs}}
            """
        ),
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def profile(profiles: Path) -> Profile:
    """Return the profile ``here``."""
    return load_profile("here", Drivers().resolve, config_path=profiles)


@pytest.fixture
def scheduler() -> IdleScheduler:
    """Return the scheduler of `environment`."""
    return IdleScheduler()


@pytest.fixture
def environment(profile: Profile, scheduler: IdleScheduler) -> Environment:
    """Return drivers for state and packages in the folder of the test, and the idle scheduler."""
    return Environment(
        profile,
        open_driver(profile.statemgr, StateManager),
        open_driver(profile.uploader, Uploader),
        scheduler,
    )


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
ENTRIES = {"statemgr": "State", "store": "State", "metricsink": "Sink"}


@pytest.fixture
def resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    """Find a made-up driver under every name except ``absent``; state managers, stores and sinks have options."""
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


@dataclass(frozen=True)
class Reading:
    """Writes the profile ``mine`` with the text of a test, and reads it."""

    folder: Path
    resolve: Resolver

    def write(self, text: str, name: str = "mine") -> Path:
        """Write a profile."""
        path = self.folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, text: str, environ: Mapping[str, str] | None = None, /, **overrides: str) -> Profile:
        """Load the profile with this text."""
        self.write(text)
        return load_profile(
            "mine", self.resolve, config_path=self.folder, overrides=overrides, environ=environ or {"TEAM": "red"}
        )

    def problems(self, text: str, environ: Mapping[str, str] | None = None, /, **overrides: str) -> list[str]:
        """Return the problems of a profile with this text."""
        self.write(text)
        found = read_profile(
            "mine", self.resolve, config_path=self.folder, overrides=overrides, environ=environ or {"TEAM": "red"}
        )
        assert (found.profile is None) == bool(found.problems)
        return [each.text.replace(f"{self.folder}/", "") for each in found.problems]


@pytest.fixture
def reading(tmp_path: Path, home: Path, resolve: Resolver) -> Reading:
    """Return an empty folder of profiles, with the made-up drivers."""
    assert home.is_dir()
    folder = tmp_path / "profiles"
    folder.mkdir()
    return Reading(folder, resolve)

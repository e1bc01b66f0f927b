"""An author's folder, a profile whose files are all in the test's own folder, and a scheduler that starts nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from heron.errors import SchedulerError
from heron.kernel.drivers import Drivers
from heron.kernel.loading import open_driver
from heron.kernel.profiles import Profile, load_profile
from heron.spi.packing import Packing
from heron.spi.scheduler import ContainerSpec, ContainerStatus, Job, JobLink, JobStatus, Scheduler, SchedulerState
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron.submit.environment import Environment

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
    """Takes jobs and never runs them; `state` is what a test makes of them."""

    spi_version = 1
    refusal: str = ""
    state: SchedulerState = SchedulerState.ABSENT
    reason: str = ""
    attempts: int = 1
    whose: str = ""
    jobs: list[Job] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """No options."""
        assert not options
        return cls()

    def schedule(self, job: Job) -> None:
        """Takes the job, unless it is to refuse."""
        if self.refusal:
            raise SchedulerError(self.refusal)
        self.jobs.append(job)
        self.whose = job.topology_id
        self.state = SchedulerState.RUNNING

    def kill(self, topology: str, topology_id: str = "") -> None:
        """Ends the job, unless it is another run's."""
        if self.status(topology).of(topology_id).state is not self.state:
            return
        self.killed.append(topology)
        self.state = SchedulerState.ABSENT

    def restart(self, topology: str, container_id: int) -> None:
        """Never asked for here."""
        raise SchedulerError(topology, container_id)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        """Never asked for here."""
        raise SchedulerError(topology, add, remove)

    def status(self, topology: str) -> JobStatus:
        """What the test set."""
        assert topology
        troubles = (ContainerStatus(1, False, self.attempts, self.reason),) if self.reason else ()
        return JobStatus(self.state, troubles, self.whose)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        """None."""
        assert topology
        return ()


@pytest.fixture
def words_file(tmp_path: Path) -> WordsFile:
    """Writes an author's file: two components, then what the test adds."""

    def write(rest: str, name: str = "words.py") -> Path:
        path = tmp_path / "author" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS + textwrap.dedent(rest), encoding="utf-8")
        return path

    return write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, with nothing in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def profiles(tmp_path: Path, home: Path) -> Path:
    """A folder with the profile ``here``, for --config-path."""
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
    """The profile ``here``, loaded."""
    return load_profile("here", Drivers().resolve, config_path=profiles)


@pytest.fixture
def scheduler() -> IdleScheduler:
    """The scheduler of `environment`."""
    return IdleScheduler()


@pytest.fixture
def environment(profile: Profile, scheduler: IdleScheduler) -> Environment:
    """Real state and packages in the test's folder, and the idle scheduler."""
    return Environment(
        profile,
        open_driver(profile.packing, Packing),
        open_driver(profile.statemgr, StateManager),
        open_driver(profile.uploader, Uploader),
        scheduler,
    )

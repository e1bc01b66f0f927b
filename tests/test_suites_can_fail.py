"""The contract suites fail if a driver breaks its contract. Each driver here contains one likely mistake."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import CheckpointError, PackageError, StateConflictError, StateError, StateUnavailableError
from heron.planner.packing_plan import PackingPlan
from heron.spi.checkpoint import StoredObject
from heron.spi.metricsink import Metric, MetricsRecord
from heron.spi.serializer import Serializer
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron_checkpoint_localfs import LocalfsCheckpointStore
from heron_metricsink_file import FileSink
from heron_packing_roundrobin import RoundRobinPacking
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.contracts import packing
from heron_testing.contracts.checkpoint import CheckpointStoreContract
from heron_testing.contracts.fault_cases.checkpoint_faults import CheckpointStoreFaultCases
from heron_testing.contracts.fault_cases.metricsink_faults import MetricsSinkFaultCases
from heron_testing.contracts.fault_cases.statemgr_faults import StateManagerFaultCases
from heron_testing.contracts.fault_cases.uploader_faults import UploaderFaultCases
from heron_testing.contracts.packing import PackingContract
from heron_testing.contracts.serializer import SerializerContract
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.fake_clock import FakeClock
from heron_testing.faults import Faults, file_faults
from heron_uploader_localfs import LocalfsUploader
from wrong_state_managers import CreationRace, LimitNotEnforced, ReadableSecrets, SetDropsHold

Broken = (AssertionError, pytest.fail.Exception)


class Forgetful(LocalFsStateManager):
    """Treats an unreachable store as empty."""

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """Return None for everything that cannot be read."""
        try:
            return super().get(kind, topology)
        except StateError:
            return None


class Remote(LocalFsStateManager):
    """Imitates a server: while `lost`, it makes changes but its answers are lost."""

    capabilities = frozenset({"server"})
    lost = False

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Make the change; its answer may be lost."""
        version = super().set(kind, topology, value, expected=expected)
        if self.lost:
            msg = "the server does not answer"
            raise StateUnavailableError(msg)
        return version


class Retrying(Remote):
    """Retries unanswered changes, and mistakes its own change for another client's."""

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Try twice."""
        try:
            return super().set(kind, topology, value, expected=expected)
        except StateUnavailableError:
            self.lost = False
            return super().set(kind, topology, value, expected=expected)


class Hasty(LocalfsUploader):
    """Writes into the target itself, and leaves an incomplete file when there is no space."""

    def download(self, uri: str, target: Path) -> None:
        """Copy without a temporary name."""
        stored = uri.removeprefix("file://").partition("#")[0]
        try:
            target.write_bytes(Path(stored).read_bytes())
        except OSError as error:
            raise PackageError(str(error)) from error


class Quiet(FileSink):
    """Silently drops records that it cannot write."""

    def process(self, record: MetricsRecord) -> None:
        """Never raise."""
        with contextlib.suppress(OSError):
            super().process(record)


class Careless(Serializer):
    """JSON: tuples become lists, keys become text."""

    spi_version = 1
    encoding = 200

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """No options."""
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """JSON."""
        return json.dumps(columns).encode()

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """JSON."""
        found: list[Sequence[object]] = json.loads(bytes(payload))
        return found


class SinkCases(MetricsSinkFaultCases):
    """The cases, with access to the received metrics."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def metrics(self) -> Sequence[Metric]:
        """Return the content of the complete lines."""
        found: list[Metric] = []
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):
                found += msgspec.convert(json.loads(line)["metrics"], list[Metric])
        return found


@contextlib.contextmanager
def opened(kind: type[LocalFsStateManager], folder: Path) -> Iterator[StateManager]:
    """Open one manager, and close it at the end."""
    manager = kind.open({"root": str(folder / "state")})
    yield manager
    manager.close()


def lost_answers(manager: Remote) -> Faults:
    """Return the fault, which sets a flag of the driver."""

    @contextlib.contextmanager
    def answers_lost() -> Iterator[None]:
        manager.lost = True
        yield
        manager.lost = False

    return Faults(answers_lost=answers_lost)


def test_an_unreachable_store_must_not_look_empty(tmp_path: Path) -> None:
    """A topology could be submitted a second time."""
    case = StateManagerFaultCases.test_a_store_that_is_away_is_an_error_and_not_an_empty_store
    for kind, breaks in ((LocalFsStateManager, False), (Forgetful, True)):
        folder = tmp_path / kind.__name__
        with (
            opened(kind, folder) as manager,
            pytest.raises(Broken) if breaks else contextlib.nullcontext(),
        ):
            case(StateManagerFaultCases(), manager, file_faults(folder / "state"))


def test_a_repeated_own_change_is_no_conflict(tmp_path: Path) -> None:
    """The command would report a conflict to its user, and undo its own change."""
    case = StateManagerFaultCases.test_a_change_whose_answer_is_lost_is_unknown_and_never_a_conflict
    for kind, breaks in ((Remote, False), (Retrying, True)):
        with opened(kind, tmp_path / kind.__name__) as manager:
            assert isinstance(manager, Remote)
            with pytest.raises((*Broken, StateConflictError)) if breaks else contextlib.nullcontext():
                case(StateManagerFaultCases(), manager, lost_answers(manager))


def failed_cases(driver: type[LocalFsStateManager], case: str, folder: Path) -> str:
    """Run one case of the suite of state managers with the driver in a pytest process, and return its output."""
    folder.mkdir()
    (folder / "test_it.py").write_text(SUITE.format(module=driver.__module__, name=driver.__name__))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        "-p",
        "no:cacheprovider",
        "-k",
        case,
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).with_name("e2e")), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert " error" not in done.stdout, done.stdout
    assert "passed" in done.stdout or "failed" in done.stdout, done.stdout
    return done.stdout


SUITE = """
import pytest
from heron_testing.contracts import statemgr
from heron_testing.contracts.statemgr import StateManagerContract
from {module} import {name}

statemgr._GONE_S = 0.5  # the mistake shows at once

class TestIt(StateManagerContract):
    name = "localfs"
    driver_class = {name}

    @pytest.fixture
    def options(self, tmp_path):
        return {{"root": str(tmp_path / "state")}}
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("driver", "case", "message"),
    [
        (SetDropsHold, StateManagerContract.test_a_set_keeps_the_hold, "assert not hold.lost()"),
        (
            SetDropsHold,
            StateManagerContract.test_a_node_that_was_set_still_ends_with_its_holder,
            "the node is gone",
        ),
        (ReadableSecrets, StateManagerContract.test_secrets_are_in_files_that_only_the_owner_can_read, "0o644"),
        (LimitNotEnforced, StateManagerContract.test_a_value_above_the_limit_is_refused, "DID NOT RAISE"),
        (
            CreationRace,
            StateManagerContract.test_several_processes_can_use_a_fresh_store_at_once,
            "OperationalError: database is locked",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_wrong_state_manager_fails_its_case(
    tmp_path: Path, driver: type[LocalFsStateManager], case: Callable[..., None], message: str
) -> None:
    """The same case passes with the driver that has no such mistake: `heron_statemgr_localfs` runs the whole suite."""
    output = failed_cases(driver, case.__name__, tmp_path / "suite")
    assert "1 failed" in output, output
    assert message in output, output


def test_an_incomplete_download_is_found(tmp_path: Path) -> None:
    """A container would unpack it."""
    case = UploaderFaultCases.test_a_download_that_finds_no_space_leaves_no_half_file
    for kind, breaks in ((LocalfsUploader, False), (Hasty, True)):
        folder = tmp_path / kind.__name__
        (folder / "container").mkdir(parents=True)
        uploader = kind.open({"root": str(folder / "root")})
        with pytest.raises(Broken) if breaks else contextlib.nullcontext():
            case(
                UploaderFaultCases(),
                uploader,
                folder / "package",
                folder / "container" / "package",
                file_faults(folder / "root"),
            )


class InPlace(LocalfsCheckpointStore):
    """Writes objects under their names, so a full disk leaves a part of one."""

    def store(self, name: str, data: bytes) -> None:
        """Write into the file itself."""
        path = self._root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise CheckpointError(str(path)) from error


class ByText(LocalfsCheckpointStore):
    """Takes a prefix for text, so that the topology ``word`` lists the checkpoints of ``words``."""

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """List all objects whose names begin with the text."""
        above = super().list(prefix.partition("/")[0])
        return tuple(each for each in above if each.name.startswith(prefix))


@pytest.mark.parametrize("kind", [LocalfsCheckpointStore, InPlace, ByText])
def test_a_torn_checkpoint_and_a_wrong_list_are_found(tmp_path: Path, kind: type[LocalfsCheckpointStore]) -> None:
    """A topology would restore the one, and delete the checkpoints of another topology for the other."""
    store = kind.open({"root": str(tmp_path / "root")})
    with pytest.raises(Broken) if kind is InPlace else contextlib.nullcontext():
        CheckpointStoreFaultCases().test_a_store_that_finds_no_space_leaves_the_former_object(
            store, file_faults(tmp_path / "root")
        )
    with pytest.raises(Broken) if kind is ByText else contextlib.nullcontext():
        CheckpointStoreContract.test_a_prefix_is_of_whole_parts(CheckpointStoreContract(), store)


def test_an_uncounted_loss_is_found(tmp_path: Path) -> None:
    """The metrics manager counts lost records only if the sink reports them."""
    for kind, breaks in ((FileSink, False), (Quiet, True)):
        folder = tmp_path / kind.__name__
        sink = kind.open({"directory": str(folder)})
        cases = SinkCases(folder / "metrics-1.jsonl")
        with (
            contextlib.closing(sink),
            pytest.raises(Broken, match="did not report the records") if breaks else contextlib.nullcontext(),
        ):
            cases.test_a_full_disk_spoils_nothing_that_was_kept(sink, file_faults(folder))


@pytest.mark.parametrize("value", [(1, "two"), {1: "a"}, {"a": (1,)}], ids=repr)
def test_a_value_that_arrives_as_another_is_found(value: object) -> None:
    """It would be a wrong result without an error."""
    with pytest.raises(AssertionError):
        SerializerContract.test_other_values_arrive_as_they_were_or_are_refused(
            SerializerContract(),
            Careless(),
            value,
        )


class SlowPacking(RoundRobinPacking):
    """Moves a clock by a time that grows with the square of the instances: 10 s for 10,000."""

    clock = FakeClock()
    packed = 0

    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        """Take 2.5 s for 5,000 instances."""
        plan = super().pack(topology)
        type(self).packed = sum(1 for _ in plan.instances())
        self.clock.advance(self.packed**2 * 1e-7)
        return plan


def test_a_slow_packing_fails_before_the_largest_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packing that needs minutes for 10,000 instances must not cost minutes to find out."""
    monkeypatch.setattr(packing, "process_time", SlowPacking.clock.monotonic_s)
    with pytest.raises(AssertionError, match=r"packing 5,000 instances took 2\.5 s; the limit for 10,000 .* is 2 s"):
        PackingContract().test_packs_ten_thousand_instances_quickly(SlowPacking.open({}), 1)
    assert SlowPacking.packed == 5_000

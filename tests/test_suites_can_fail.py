"""The contract suites fail if a driver breaks its contract. Each driver here contains one likely mistake."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
import pytest

from heron.errors import PackageError, StateConflictError, StateError, StateUnavailableError
from heron.spi.metricsink import Metric, MetricsRecord
from heron.spi.serializer import Serializer
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron_metricsink_file import FileSink
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.contracts.metricsink_faults import MetricsSinkFaultCases
from heron_testing.contracts.serializer import SerializerContract
from heron_testing.contracts.statemgr_faults import StateManagerFaultCases
from heron_testing.contracts.uploader_faults import UploaderFaultCases
from heron_testing.faults import Faults, file_faults
from heron_uploader_localfs import LocalfsUploader

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


def test_an_uncounted_loss_is_found(tmp_path: Path) -> None:
    """The metrics manager counts lost records only if the sink reports them."""
    for kind, breaks in ((FileSink, False), (Quiet, True)):
        folder = tmp_path / kind.__name__
        sink = kind.open({"directory": str(folder)})
        cases = SinkCases(folder / "metrics-1.jsonl")
        with (
            contextlib.closing(sink),
            pytest.raises(Broken, match="nobody counts it") if breaks else contextlib.nullcontext(),
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

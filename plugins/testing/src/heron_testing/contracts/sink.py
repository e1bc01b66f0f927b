"""The contract suite of sinks of pipelines. Subclass `SinkContract`, name your program, and provide the target.

The suite runs the program as users do, with real processes, and kills them. What counts is what the target reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from heron_testing.connectors.feeds import SinkTarget
from heron_testing.connectors.flows import Flow
from heron_testing.connectors.programs import PARTITIONS, READ, WRITE
from heron_testing.connectors.records import Record, in_order, record_of
from heron_testing.contracts.connector import MIB, ConnectorContract

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["SinkContract"]

_TOPOLOGY = "write_contract"
_LARGE_BYTES = 1000
_COUNT = 800  # records of each partition: enough for each fault
_FAULTS = (("instance", f"/{WRITE}"), ("instance", f"/{READ}"), ("stmgr", ""), ("instance", f"/{WRITE}"))


class SinkContract(ConnectorContract):
    """Cases for a sink of `heron_streamlet`. The attributes say what the sink promises.

    At least once the topology has checkpoints too: a sink may hold what it was given until the next one.
    """

    ordered = True
    """Whether readers see the records of a partition in their order, if results are exact."""

    server_goes_away = True
    """Whether there is a server that can be away, so that results wait."""

    bounded_while_away = True
    """Whether a task holds little while the server is away."""

    most_held_bytes = 64 * MIB
    """How much a task of the sink may grow while the server is away."""

    promises: ClassVar = {
        "test_effectively_once_each_record_is_written_once_whatever_dies": "exact",
        "test_a_server_that_is_away_costs_no_record": "server_goes_away",
        "test_memory_is_bounded_while_the_server_is_away": "bounded_while_away",
    }

    @pytest.fixture
    def target(self) -> SinkTarget:
        """What reads the results; override it."""
        raise NotImplementedError

    def test_at_least_once_each_record_is_written_whatever_dies(self, sandbox: Sandbox, target: SinkTarget) -> None:
        """A killed task of the sink, one before it, and a stream manager cost no record."""
        self._survives(_Writing(self, sandbox, target, "ATLEAST_ONCE"))

    def test_effectively_once_each_record_is_written_once_whatever_dies(
        self, sandbox: Sandbox, target: SinkTarget
    ) -> None:
        """What readers see are the records of complete checkpoints."""
        writing = _Writing(self, sandbox, target, "EFFECTIVELY_ONCE")
        self._survives(writing)
        writing.check_exact()

    def _survives(self, writing: _Writing) -> None:
        writing.until_at_gate()
        for role, name in _FAULTS:
            writing.flow.kill(role, name)
            writing.flow.advance()
            writing.until_at_gate()
        writing.until_all_written()

    def test_an_update_of_its_tasks_costs_no_record(self, sandbox: Sandbox, target: SinkTarget) -> None:
        """Tasks that are removed have written what they had."""
        writing = _Writing(self, sandbox, target, self.best)
        for tasks in (3, 1):
            writing.until_at_gate()
            writing.flow.update(WRITE, tasks)
            writing.flow.advance()
        writing.until_at_gate()
        writing.until_all_written()
        if self.exact:
            writing.check_exact()

    def test_a_server_that_is_away_costs_no_record(self, sandbox: Sandbox, target: SinkTarget) -> None:
        """Results wait, also if a task of the sink starts meanwhile."""
        writing = _Writing(self, sandbox, target, self.best)
        writing.until_at_gate()
        target.stop_server()
        writing.flow.advance()
        writing.flow.kill("instance", f"/{WRITE}")
        target.start_server()
        writing.until_all_written()
        if self.exact:
            writing.check_exact()

    def test_memory_is_bounded_while_the_server_is_away(self, sandbox: Sandbox, target: SinkTarget) -> None:
        """What waits is on a disk, or back pressure reaches the source."""
        count = 2 * self.most_held_bytes // _LARGE_BYTES // PARTITIONS
        writing = _Writing(self, sandbox, target, "ATLEAST_ONCE", count=count, padding=_LARGE_BYTES)
        writing.until_at_gate()
        before = writing.flow.rss_bytes(WRITE)
        target.stop_server()
        writing.flow.open_gate()
        grown = writing.flow.stalled_rss_bytes(READ) - before
        target.start_server()
        assert grown <= self.most_held_bytes, f"a task grew by {grown / MIB:.0f} MiB"
        writing.until_all_written()

    def test_poison_fails_alone(self, sandbox: Sandbox, target: SinkTarget) -> None:
        """A record that the sink refuses is a dead letter; its neighbours are written."""
        writing = _Writing(self, sandbox, target, self.best, poison=7)
        flow = writing.flow
        writing.until_at_gate()
        flow.run.until(lambda: len(flow.dead_letters()) == PARTITIONS, "dead letters", self.within_s)
        writing.until_all_written()


class _Writing:
    """Records on their way to the target."""

    def __init__(
        self,
        suite: SinkContract,
        sandbox: Sandbox,
        target: SinkTarget,
        mode: str,
        *,
        count: int = _COUNT,
        poison: int = -1,
        padding: int = 0,
    ) -> None:
        self.suite, self.target = suite, target
        self._wanted = {(partition, each) for partition in range(PARTITIONS) for each in range(count) if each != poison}
        words = ("--records", str(count), "--poison", str(poison), "--padding", str(padding))
        self.flow = Flow.start(sandbox, suite.program, _TOPOLOGY, mode, target.given, *words, checkpoints=True)

    def until_at_gate(self) -> None:
        """Wait until the records before the gate are visible."""
        wanted = {each for each in self._wanted if each[1] < self.flow.gate}
        self.flow.run.until(
            lambda: wanted <= set(self.written()), f"records below {self.flow.gate}", self.suite.within_s
        )

    def until_all_written(self) -> None:
        """Let all records through, and wait for the end of the run; none is missing then."""
        self.flow.open_gate()
        self.flow.run.finished(self.suite.within_s)
        written = set(self.written())
        missing = sorted(self._wanted - written)
        assert not missing, f"{len(missing)} records are missing, first {missing[:5]}"
        assert written <= self._wanted

    def check_exact(self) -> None:
        """Each record is there once; those of a partition in their order, if the sink keeps it."""
        found = in_order(self.written())
        wanted = in_order(sorted(self._wanted))
        assert {key: numbers if self.suite.ordered else sorted(numbers) for key, numbers in found.items()} == wanted

    def written(self) -> list[Record]:
        """The records that readers see."""
        return [record_of(text) for text in self.target.written()]

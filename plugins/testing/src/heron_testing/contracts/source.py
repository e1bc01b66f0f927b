"""The contract suite of sources of pipelines. Subclass `SourceContract`, name your program, and provide the feed.

The suite runs the program as users do, with real processes, and kills them.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, ClassVar

import pytest

from heron_testing.connectors.feeds import SourceFeed
from heron_testing.connectors.flows import FAULTS, Feeding, Flow
from heron_testing.connectors.programs import READ
from heron_testing.connectors.records import HELD, POISON, Record, arrived, in_order
from heron_testing.contracts.connector import MIB, ConnectorContract

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["SourceContract"]

_TOPOLOGY = "read_contract"
_HALF = 600  # records of each partition: enough for each fault
_LARGE_BYTES = 10_000


class SourceContract(ConnectorContract):
    """Cases for a source of `heron_streamlet`. The attributes say what the source promises."""

    partitions = 2
    """How many partitions the feed fills."""

    live = True
    """Whether the source reads what is put while it runs. Otherwise the input is complete when the topology starts."""

    listens = False
    """Whether the source is a server itself, so that records can be put only while it runs."""

    moves = True
    """Whether an update of the parallelism moves partitions."""

    updates: tuple[int, ...] = (3, 1)
    """The numbers of tasks that updates change to. If the input ends, a task that gets no partition refuses updates."""

    server_goes_away = True
    """Whether the source waits for a server that is away, and has one."""

    tells_backlog = False
    """Whether the metric `backlog` shows how many records wait at the source."""

    most_held_bytes = 64 * MIB
    """How much a task of the source may grow while nothing takes its records. The suite offers twice as much."""

    promises: ClassVar = {
        "test_effectively_once_each_record_arrives_once_and_in_order_whatever_dies": "exact",
        "test_a_later_run_goes_on_where_the_former_one_ended": "exact",
        "test_an_update_moves_partitions": "moves",
        "test_a_server_that_is_away_is_waited_for": "server_goes_away",
    }

    @pytest.fixture
    def feed(self) -> SourceFeed:
        """The feed of the connector; override it."""
        raise NotImplementedError

    def test_at_least_once_each_record_arrives_whatever_dies(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """A killed task of the source, one behind it, and a stream manager cost no record."""
        self._survives(_Reading(self, sandbox, feed, "ATLEAST_ONCE"))

    def test_effectively_once_each_record_arrives_once_and_in_order_whatever_dies(
        self, sandbox: Sandbox, feed: SourceFeed
    ) -> None:
        """Positions and results come back from one checkpoint."""
        reading = _Reading(self, sandbox, feed, "EFFECTIVELY_ONCE")
        self._survives(reading)
        reading.check_exact()

    def _survives(self, reading: _Reading) -> None:
        reading.until_at_gate()
        for role, name in FAULTS:
            reading.flow.kill(role, name)
            reading.flow.advance()
            reading.until_at_gate()
        reading.put_rest()
        reading.until_all_arrived()

    def test_a_later_run_goes_on_where_the_former_one_ended(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """Positions are part of a checkpoint, which outlives the topology."""
        reading = _Reading(self, sandbox, feed, "EFFECTIVELY_ONCE")
        if self.listens:  # a client whose batch is not answered would send it to nobody
            reading.flow.open_gate()
            reading.feeding.wait()
        else:
            reading.until_at_gate()
        sandbox.output_of("checkpoints", _TOPOLOGY, "take")
        run = reading.flow.run
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 130, run.all_output
        reading.start(continues=True)
        reading.put_rest()
        reading.until_all_arrived()
        reading.check_exact()

    def test_an_update_moves_partitions(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """A task goes on where the former reader of its partition was."""
        reading = _Reading(self, sandbox, feed, self.best)
        for tasks in self.updates:
            reading.until_at_gate()
            reading.flow.update(READ, tasks)
            reading.flow.advance()
        reading.until_at_gate()
        reading.put_rest()
        reading.until_all_arrived()
        if self.exact:
            reading.check_exact()

    def test_a_server_that_is_away_is_waited_for(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """The topology neither fails nor loses a record, also when a task starts meanwhile."""
        reading = _Reading(self, sandbox, feed, self.best)
        reading.until_at_gate()
        feed.stop_server()
        reading.flow.kill("instance", f"/{READ}")
        reading.flow.advance()
        feed.start_server()
        reading.put_rest()
        reading.until_all_arrived()
        if self.exact:
            reading.check_exact()

    def test_memory_is_bounded_while_nothing_takes_the_records(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """Back pressure reaches the source, so what waits stays in the server. Then all of it arrives."""
        large = 2 * self.most_held_bytes // _LARGE_BYTES // self.partitions
        reading = _Reading(self, sandbox, feed, "ATLEAST_ONCE", second=(large, _LARGE_BYTES))
        reading.until_at_gate()
        flow = reading.flow
        before = flow.rss_bytes(READ)
        (flow.run.out / HELD).touch()
        flow.open_gate()
        reading.put_rest()
        grown = flow.stalled_rss_bytes(READ) - before
        (flow.run.out / HELD).unlink()
        assert grown <= self.most_held_bytes, f"a task grew by {grown / MIB:.0f} MiB"
        reading.until_all_arrived()

    def test_poison_fails_alone(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """A record that cannot be processed is a dead letter; its neighbours arrive."""
        reading = _Reading(self, sandbox, feed, self.best, poison=7)
        reading.until_at_gate()
        reading.flow.run.until(
            lambda: len(reading.flow.dead_letters()) == self.partitions, "dead letters", self.within_s
        )
        assert all(f"7 {POISON}" in letter for letter in reading.flow.dead_letters())
        reading.put_rest()
        reading.until_all_arrived()

    def test_the_backlog_is_shown_as_declared(self, sandbox: Sandbox, feed: SourceFeed) -> None:
        """The health manager sizes topologies by it. Behind the closed gate there are records that wait."""
        reading = _Reading(self, sandbox, feed, "ATLEAST_ONCE")
        reading.until_at_gate()
        flow = reading.flow
        if self.tells_backlog:  # the first metrics may be older than the first answer of a server
            flow.run.until(lambda: (flow.backlog(READ) or 0) > 0, "a backlog", self.within_s)
        else:
            assert flow.backlog(READ) is None
        reading.put_rest()
        reading.until_all_arrived()


class _Reading:
    """Records on their way through a run; a second run may follow."""

    def __init__(
        self,
        suite: SourceContract,
        sandbox: Sandbox,
        feed: SourceFeed,
        mode: str,
        *,
        second: tuple[int, int] = (_HALF, 0),
        poison: int = -1,
    ) -> None:
        self.suite, self.sandbox, self.feed, self.mode, self._second = suite, sandbox, feed, mode, second
        self.feeding = Feeding(feed, suite.partitions, poison)
        self._runs: list[HeronRun] = []
        if not suite.listens:
            self._put_first()
            self.feeding.wait()
        self.start()
        if suite.listens:
            self._put_first()

    def _put_first(self) -> None:
        self.feeding.put((_HALF, 0), *([] if self.suite.live else [self._second]))

    def start(self, *, continues: bool = False) -> None:
        """Start a run; the gate lets some records through."""
        self.flow = Flow.start(
            self.sandbox,
            self.suite.program,
            _TOPOLOGY,
            self.mode,
            self.feed.given,
            checkpoints=self.mode == "EFFECTIVELY_ONCE",
            continues=continues,
        )
        self._runs.append(self.flow.run)
        self.feed.began(self.flow.run)

    def put_rest(self) -> None:
        """Put the second half, if the source can read it now."""
        if self.suite.live:
            self.feeding.put(self._second)

    def until_at_gate(self) -> None:
        """Wait until the records before the gate have arrived."""
        wanted = {each for each in self.feeding.wanted if each[1] < self.flow.gate}
        self.flow.run.until(
            lambda: wanted <= set(self.arrived()), f"records below {self.flow.gate}", self.suite.within_s
        )

    def until_all_arrived(self) -> None:
        """Let all records through, and wait for them; a run whose input ends ends."""
        self.flow.open_gate()
        if not self.suite.live:
            self.flow.run.finished(self.suite.within_s)
        self.feeding.wait()
        wanted = self.feeding.wanted
        if self.suite.live:
            self.flow.run.until(lambda: wanted <= set(self.arrived()), "all records", self.suite.within_s)
        missing = sorted(wanted - set(self.arrived()))
        assert not missing, f"{len(missing)} records are missing, first {missing[:5]}"
        assert set(self.arrived()) <= wanted

    def check_exact(self) -> None:
        """Each record is there once, and those of a partition in their order; also after two more checkpoints."""
        if self.suite.live:
            self.flow.checkpoint()
        assert in_order(self.arrived()) == dict(self.feeding.numbers())

    def arrived(self) -> list[Record]:
        """The records that all runs have written."""
        return [record for run in self._runs for record in arrived(run.out)]

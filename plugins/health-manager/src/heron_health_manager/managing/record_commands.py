"""What people tell the health manager: history, pause, resume, approve."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from heron.clock import wall_s
from heron.errors import UsageError, known
from heron.spi.health_values import ActionKind, Decision, DecisionState
from heron.state_nodes.health_records import HealthRecords
from heron_cli.topologies.environment import Environment, ProfileChoice, find_profile, open_environment
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_health_manager.managing.acting import Attempt, Carries, begin
from heron_health_manager.managing.carrier import Carrier
from heron_health_manager.managing.record_book import RecordBook

__all__ = ["OpenRecords", "approve", "open_records", "set_paused"]


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The records of a running topology, and what carries actions out with the keys of the user."""

    name: str
    book: RecordBook
    carrier: Carries


@contextmanager
def open_records(choice: ProfileChoice, name: str, timeout_s: float) -> Iterator[OpenRecords]:
    """Open the records of a topology for this block.

    Raises:
        UsageError: when the topology does not run.
        HeronError: when the profile or the state manager cannot be used.
    """
    environment = open_environment(find_profile(choice))
    try:
        with _connect(environment, name, timeout_s) as topology:
            run = topology.run
        book = RecordBook(environment.statemgr, name, run.topology_id)
        carrier = Carrier(environment, choice, lambda limit_s: _connect(environment, name, limit_s))
        yield OpenRecords(name, book, carrier)
    finally:
        environment.close()


def _connect(environment: Environment, name: str, timeout_s: float) -> RemoteTopology:
    return RemoteTopology(environment.statemgr, environment.scheduler, name, timeout_s)


def set_paused(records: OpenRecords, *, paused: bool) -> HealthRecords:
    """Tell the health manager to begin nothing, or to go on; an action under way is completed."""
    return records.book.change(lambda each: replace(each, paused=paused))


def approve(records: OpenRecords, number: int) -> tuple[Attempt, str]:
    """Carry out what was advised, as the user of the command; return how that ended, and why.

    Raises:
        UsageError: when the decision cannot be approved, or the plan is not the one that it is about; nothing changed.
        HeronError: when the topology or the state manager does not answer; nothing was changed.
    """
    kept = records.book.read()
    decision = _advised(records.name, kept.records, number)
    planned = records.carrier.plan(decision.action)
    if why := planned.changed():
        msg = f"decision {number}: {why}; see `heron health {records.name}`"
        raise UsageError(msg)
    approved = replace(decision, at_s=wall_s(), reason=f"approved by {getpass.getuser()}; {decision.reason}")
    return begin(records.carrier, records.book, kept, (approved,), planned, wall_s)


def _advised(name: str, records: HealthRecords, number: int) -> Decision:
    by_number = {each.number: each for each in records.decisions}
    decision = by_number.get(number)
    if decision is None:
        msg = f"topology {name!r} has no decision {number}; it has {known(map(str, by_number))}"
        raise UsageError(msg)
    if decision.state is not DecisionState.ADVISED:
        msg = f"decision {number} is {decision.state.value}; only advice can be approved"
        raise UsageError(msg)
    if decision.action.kind is ActionKind.ADVISE:
        msg = f"decision {number}: only a person can do this: {decision.action.text}"
        raise UsageError(msg)
    under_way = [each.number for each in records.decisions if each.state is DecisionState.STARTED]
    if under_way:
        msg = f"decision {under_way[0]} is under way, and one action is carried out at a time; try again later"
        raise UsageError(msg)
    return decision

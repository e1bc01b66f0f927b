"""All interleavings of a health manager that dies, its successor, its requests under way, and an operator.

The model has the steps of `acting` and the fence of the topology manager; decisions come from `pilot` and `recovery`
themselves. A request that was sent may arrive at any later time, also when its sender is dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Decision,
    DecisionState,
    Diagnosis,
    Expectation,
    Measurement,
    Measurements,
    Subject,
    TopologyShape,
)
from heron_health_manager.diagnosing.policy_round import Finding, Round
from heron_health_manager.managing.pilot import Mode, next_step
from heron_health_manager.managing.recovery import PlanFacts, recovered
from heron_health_manager.managing.safety import Limits

WANTED = 3
OPERATORS = 5
NOW_S = 1_000.0
SPLIT = Subject("split")


@dataclass(frozen=True)
class Request:
    """An update under way to the topology manager."""

    decision: int
    base: str
    target: str
    tasks: int


@dataclass(frozen=True)
class Manager:
    """A health manager between two steps: what it is about to write, and what it is about to send."""

    read_at: int = 0
    writes: tuple[Decision, ...] = ()
    sends: Request | None = None


@dataclass(frozen=True)
class World:
    """The plan, the records, the live health manager, its requests, and what has happened so far."""

    plan: str = "plan"
    tasks: int = 1
    records: tuple[Decision, ...] = ()
    version: int = 0
    manager: Manager = Manager()
    in_flight: frozenset[Request] = frozenset()
    applied: tuple[Request, ...] = ()
    deaths: int = 0
    operated: str = ""


@dataclass(frozen=True)
class Protocol:
    """What the model does; the tests switch one part off at a time."""

    fenced: bool = True
    records_first: bool = True
    recovers: bool = True
    cool_down_s: float = 0.0


def shape_of(world: World) -> TopologyShape:
    return TopologyShape("t", (ComponentShape("split", "bolt", dict.fromkeys(range(1, world.tasks + 1), 1)),))


def round_of(world: World) -> Round:
    """What the policy finds: too few tasks until there are enough."""
    shape = shape_of(world)
    measured = Measurements(shape, (Measurement("load-share", SPLIT, WANTED / world.tasks),))
    if world.tasks >= WANTED:
        return Round(measured, (), (), ())
    action = Action(
        ActionKind.UPDATE,
        f"split {world.tasks} -> {WANTED}",
        parallelism={"split": WANTED},
        before={"split": world.tasks},
        expected=Expectation("load-share", SPLIT, at_most=1.0),
    )
    return Round(measured, (), (Finding(Diagnosis("under-provisioned", SPLIT, 0.9, ("it is full",)), action),), ())


def merged(records: tuple[Decision, ...], changed: tuple[Decision, ...]) -> tuple[Decision, ...]:
    by_number = {each.number: each for each in (*records, *changed)}
    return tuple(by_number[number] for number in sorted(by_number))


def decided(world: World, protocol: Protocol) -> Manager:
    """Read everything and decide, as `HealthManager.round` does; nothing is written yet."""
    facts = PlanFacts(shape_of(world), world.plan)
    found = tuple(recovered(world.records, facts, NOW_S)) if protocol.recovers else ()
    limits = Limits(cool_down_s=protocol.cool_down_s, effect_s=1e9)
    step = next_step(merged(world.records, found), round_of(world), "p", Mode.ACT, NOW_S, limits)
    if step.action is None:
        return Manager(world.version, (*found, *step.records))
    *others, decision = step.records
    tasks = step.action.parallelism["split"]
    request = Request(decision.number, world.plan, f"{world.plan}>{tasks}", tasks)
    started = replace(decision, base=request.base, target=request.target)
    return Manager(world.version, (*found, *others, started), request)


def steps(world: World, protocol: Protocol) -> Iterator[World]:
    """All worlds after one step of any participant."""
    manager = world.manager
    if not manager.writes and manager.sends is None:
        if len(world.records) < 4:
            yield replace(world, manager=decided(world, protocol))
    elif manager.writes and (protocol.records_first or manager.sends is None):
        if manager.read_at == world.version:
            records = merged(world.records, manager.writes)
            yield replace(world, records=records, version=world.version + 1, manager=replace(manager, writes=()))
        else:  # a conflict: nothing is done
            yield replace(world, manager=Manager())
    elif manager.sends is not None:
        yield replace(world, in_flight=world.in_flight | {manager.sends}, manager=replace(manager, sends=None))
    if world.deaths < 2 and manager != Manager():
        yield replace(world, deaths=world.deaths + 1, manager=Manager())
    for request in world.in_flight:
        rest = world.in_flight - {request}
        if request.base == world.plan or not protocol.fenced:
            applied = (*world.applied, request)
            yield replace(world, in_flight=rest, plan=request.target, tasks=request.tasks, applied=applied)
        else:
            yield replace(world, in_flight=rest)
    if not world.operated:
        yield replace(world, plan=f"{world.plan}>operator", tasks=OPERATORS, operated=world.plan)


def explored(protocol: Protocol) -> list[World]:
    """All worlds that can be reached."""
    seen, waiting = {repr(World()): World()}, [World()]
    while waiting:
        for world in steps(waiting.pop(), protocol):
            if (name := repr(world)) not in seen:
                seen[name] = world
                waiting.append(world)
    return list(seen.values())


def wrong(world: World) -> str:
    """What must never happen; "" if it has not."""
    numbers = [each.decision for each in world.applied]
    if len(numbers) != len(set(numbers)):
        return "an action was carried out twice"
    if len(world.applied) > 1:
        return "two actions were carried out against one cause"
    if world.operated and world.plan != f"{world.operated}>operator":
        return "the plan of the operator was changed"
    if {each.decision for each in world.applied} - {each.number for each in world.records}:
        return "an action was carried out that no record names"
    if sum(each.state is DecisionState.STARTED for each in world.records) > 1:
        return "two decisions are under way"
    return ""


WORLDS = explored(Protocol())


def test_no_interleaving_repeats_an_action_or_changes_the_plan_of_an_operator() -> None:
    """Two deaths and one update by hand, at every moment."""
    assert {wrong(world) for world in WORLDS} == {""}
    assert len(WORLDS) > 1_000
    assert any(world.deaths == 2 and world.applied for world in WORLDS)


def test_what_was_not_begun_is_decided_again_and_done() -> None:
    """A death between record and action costs time, and not the action."""
    given_up = [
        world
        for world in WORLDS
        if world.applied and any(each.state is DecisionState.ABANDONED for each in world.records)
    ]
    assert any(world.applied[0].decision == 2 for world in given_up)


@pytest.mark.parametrize("cool_down_s", [0.0, 60.0])
def test_records_that_are_at_rest_tell_the_truth(cool_down_s: float) -> None:
    """When nothing is under way, the decision that made the present plan counts as carried out.

    A late request and its repetition ask for the same plan, and nobody can tell which of them made it. With a cool-down
    there is no repetition yet when the request arrives.
    """
    for world in explored(Protocol(cool_down_s=cool_down_s)):
        at_rest = world.manager == Manager() and not world.in_flight
        if not at_rest or next(iter(recovered(world.records, PlanFacts(shape_of(world), world.plan), NOW_S)), None):
            continue
        present = {each.state for each in world.records if each.target == world.plan}
        if present:  # nobody has changed the plan since
            assert present & {DecisionState.STARTED, DecisionState.EFFECTIVE}, world


@pytest.mark.parametrize(
    "protocol", [Protocol(fenced=False), Protocol(records_first=False), Protocol(fenced=False, recovers=False)]
)
def test_simpler_protocols_break(protocol: Protocol) -> None:
    """The fence and the order are needed: without one of them, some interleaving is wrong."""
    assert {wrong(world) for world in explored(protocol)} != {""}

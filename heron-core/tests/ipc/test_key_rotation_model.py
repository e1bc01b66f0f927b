"""The protocol of decision 059 in a model: every order of its steps, with crashes and late messages.

The model has the node `KEYS`, the topology manager with its executor, and the containers `a` and `b`, each with an
executor and a stream manager that sends to the other. The search visits every state that is reachable with some
crashes. In none of them a peer is refused or a connection is cut that carries data, and from each of them the rotation
can still be completed.

A *stage* says which keys a process has: 0 the old ones, 1 both, 2 the new ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

OLD, NEW = 0, 1
KNOWN = ({OLD}, {OLD, NEW}, {NEW})
LAST = 2
OTHER = (1, 0)


class BrokenError(Exception):
    """The protocol refused a peer that it must not refuse, or cut a connection."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the protocol; a test switches each off, and the search must find what it is for."""

    waits: bool = True  # the old keys leave the node when every container has confirmed
    moved: bool = True  # a stream manager confirms when its sessions use the new keys, not when it has them
    both: bool = True  # with both sets, a stream manager listens at two ports, and its location has both
    follows: bool = True  # an executor follows the node while it runs
    leader_last: bool = True  # a topology manager listens with the oldest set of the node
    reads: bool = True  # a new executor reads the node, and has no copy of its predecessor's


@dataclass(frozen=True, slots=True)
class Container:
    """An executor and its stream manager; `stage` -1 is a dead stream manager.

    `offered` is the stage of its location in the plan, -1 for a location of a former incarnation. `seen` is that of the
    other one's location, as the newest plan that has arrived here says.
    """

    executor: int = 0
    stage: int = 0
    registered: bool = True
    offered: int = 0
    seen: int = 0
    link: int | None = OLD
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """The stages of the node and of the topology manager's executor, the leader's keys (None: dead), the containers."""

    node: int = 0
    executor: int = 0
    leader: int | None = OLD
    containers: tuple[Container, Container] = (Container(), Container())
    crashes: int = 2

    def having(self, at: int, container: Container) -> State:
        """The state with another container in that place."""
        others = list(self.containers)
        others[at] = container
        return replace(self, containers=(others[0], others[1]))


def steps(state: State, rules: Rules) -> Iterator[State]:
    """Every state that can be the next one."""
    yield from of_command(state, rules)
    yield from of_leader(state, rules)
    for at in (0, 1):
        yield from of_container(state, at, rules)
        yield from of_stmgr(state, at, rules)
        yield from crash(state, at, rules)


def of_command(state: State, rules: Rules) -> Iterator[State]:
    """It writes the new keys beside the old ones, and removes the old ones when all have confirmed."""
    if state.node == 0:
        yield replace(state, node=1)
    elif state.node == 1 and (not rules.waits or all(each.confirmed for each in state.containers)):
        yield replace(state, node=2)


def of_leader(state: State, rules: Rules) -> Iterator[State]:
    """Its executor follows the node, and restarts it when the first keys change; it dies, and is started again."""
    oldest = NEW if state.executor == LAST or (not rules.leader_last and state.executor == 1) else OLD
    if state.executor < state.node and rules.follows:
        yield replace(state, executor=state.node)
    if state.leader is None:
        yield replace(state, leader=oldest)
    elif state.leader != oldest:
        yield without_leader(state)
    elif state.crashes:
        yield replace(without_leader(state), crashes=state.crashes - 1)


def without_leader(state: State) -> State:
    """What a leader has heard is gone with it; the plan stays in the state manager."""
    left = [replace(each, registered=False, confirmed=False) for each in state.containers]
    return replace(state, leader=None, containers=(left[0], left[1]))


def of_container(state: State, at: int, rules: Rules) -> Iterator[State]:
    """An executor follows the node; its stream manager gets the keys, or starts with them."""
    own, peer = state.containers[at], state.containers[OTHER[at]]
    if own.executor < state.node and rules.follows:
        yield state.having(at, replace(own, executor=state.node))
    if own.stage < 0:
        yield state.having(at, replace(own, stage=own.executor, registered=False, offered=-1, seen=-1, link=None))
    elif own.stage < own.executor:
        if peer.link == OLD and own.executor == LAST:
            msg = "the end of a port cuts a session that carries data"
            raise BrokenError(msg)
        yield state.having(at, replace(own, stage=own.executor, registered=False))


def of_stmgr(state: State, at: int, rules: Rules) -> Iterator[State]:
    """A stream manager registers, gets a plan, connects or moves its session, and confirms."""
    own, peer = state.containers[at], state.containers[OTHER[at]]
    if own.stage < 0:
        return
    if state.leader is not None and not own.registered:
        if state.leader in KNOWN[own.stage]:
            yield state.having(at, replace(own, registered=True, offered=own.stage, confirmed=False))
        elif state.leader == NEW:
            msg = "a process does not know the keys of its leader yet"
            raise BrokenError(msg)
    if state.leader is not None and own.registered and own.seen != peer.offered:
        yield state.having(at, replace(own, seen=peer.offered))
    if peer.stage >= 0 and peer.offered >= 0 and own.seen >= 0:
        yield from connect(state, at, rules)
    if state.leader is not None and own.registered and own.stage >= 1 and (own.link == NEW or not rules.moved):
        yield state.having(at, replace(own, confirmed=True))


def connect(state: State, at: int, rules: Rules) -> Iterator[State]:
    """It uses the newest keys that both have. The old connection of a session is used until the new one is there."""
    own, peer = state.containers[at], state.containers[OTHER[at]]
    offered = KNOWN[own.seen] if rules.both else {max(KNOWN[own.seen])}
    common = KNOWN[own.stage] & offered
    if not common:
        if own.link is None and state.node > 0:
            msg = "two stream managers have no keys in common"
            raise BrokenError(msg)
        return
    if own.link == max(common):
        return
    if max(common) not in KNOWN[peer.stage]:
        msg = f"a peer in stage {peer.stage} refuses the keys {max(common)}"
        raise BrokenError(msg)
    yield state.having(at, replace(own, link=max(common)))


def crash(state: State, at: int, rules: Rules) -> Iterator[State]:
    """A stream manager dies, alone or with its executor. The leader still has what it has confirmed."""
    own, peer = state.containers[at], state.containers[OTHER[at]]
    if own.stage < 0 or not state.crashes:
        return
    left = replace(state, crashes=state.crashes - 1).having(OTHER[at], replace(peer, link=None, seen=-1))
    dead = replace(own, stage=-1, offered=-1, link=None)
    yield left.having(at, dead)
    yield left.having(at, replace(dead, executor=state.node if rules.reads else 0))


def explore(rules: Rules, crashes: int) -> dict[State, set[State]]:
    """Every reachable state with its next ones.

    Raises:
        BrokenError: when a peer is refused or a connection is cut.
    """
    found: dict[State, set[State]] = {}
    waiting = deque([State(crashes=crashes)])
    while waiting:
        state = waiting.popleft()
        if state in found:
            continue
        found[state] = set(steps(state, rules))
        waiting.extend(found[state])
    return found


def is_complete(state: State) -> bool:
    """Whether nobody has the old keys, and all are connected with the new ones."""
    return (
        state.node == LAST
        and state.leader == NEW
        and all(each.stage == LAST and each.registered and each.link == NEW for each in state.containers)
    )


def stuck(found: dict[State, set[State]]) -> set[State]:
    """The states from which the rotation cannot be completed."""
    before: dict[State, set[State]] = {}
    for state, following in found.items():
        for each in following:
            before.setdefault(each, set()).add(state)
    good = {state for state in found if is_complete(state)}
    waiting = deque(good)
    while waiting:
        for each in before.get(waiting.popleft(), ()):
            if each not in good:
                good.add(each)
                waiting.append(each)
    return set(found) - good


@pytest.mark.parametrize("crashes", [0, 2])
def test_no_order_of_steps_and_crashes_refuses_a_peer_cuts_a_connection_or_gets_stuck(crashes: int) -> None:
    """A crash in every state, of the leader, a stream manager or a container."""
    found = explore(Rules(), crashes)
    assert len(found) > 50
    assert any(map(is_complete, found))
    assert stuck(found) == set()


def test_a_container_that_is_away_only_delays_the_rotation() -> None:
    """While one of them has only the old keys, all accept them."""
    found = explore(Rules(), 1)
    waits = [state for state in found if state.containers[1].executor == 0]
    assert max(state.node for state in waits) == 1
    assert all(OLD in KNOWN[state.containers[0].stage] for state in waits if state.containers[0].stage >= 0)


@pytest.mark.parametrize("rule", ["waits", "moved", "both", "follows", "leader_last", "reads"])
def test_each_rule_of_the_protocol_is_needed(rule: str) -> None:
    """Without it, the search finds a peer that is refused, a connection that is cut, or a rotation that cannot end."""
    try:
        found = explore(replace(Rules(), **{rule: False}), 2)
    except BrokenError:
        return
    assert stuck(found), f"nothing needs the rule {rule!r}"

"""The protocol of decision 059 in a model: every order of its steps, with crashes, stale reads and a lost leader.

The model has a topology manager that leads and the stream managers `a` and `b`. Each of the two connects to the other
and to the leader. The search visits every state that is reachable with some crashes. In none of them a peer is refused
or a connection is cut that carries data, and from each of them the rotation can still be completed.

A *phase* says what a process does: 0 knows the old keys only, 1 accepts both, 2 also proves the new ones, 3 accepts the
new ones only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

OLD, NEW = 0, 1
ACCEPTS = ({OLD}, {OLD, NEW}, {OLD, NEW}, {NEW})
PROVES = (OLD, OLD, NEW, NEW)
LAST = 3
OTHER = (1, 0)


class BrokenError(Exception):
    """The protocol refused a peer that it must not refuse, or cut a connection."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the protocol; a test switches each off, and the search must find what it is for."""

    waits: bool = True  # a phase ends when every process of the plan has confirmed it
    of_the_plan: bool = True  # of the plan, not only of those that the present leader has heard of
    renewed: bool = True  # the new keys are confirmed when every connection has proved them
    by_incarnation: bool = True  # a new registration voids what the former process has confirmed
    adopts: bool = True  # the answer to a registration has the phase, which is adopted before any peer is met
    registers_again: bool = True  # when it has to prove other keys in that phase, before it sends anything else
    rereads: bool = True  # a process that starts, or is refused by the leader, has the present node, not a copy


@dataclass(frozen=True, slots=True)
class Process:
    """A stream manager. `phase` -1 is dead; `links` are the keys that it has proved to the leader and to its peer."""

    phase: int = 0
    registered: bool = True
    links: tuple[int | None, int | None] = (OLD, OLD)
    confirmed: int = 0
    """What the leader knows of it; -1 is nothing."""


@dataclass(frozen=True, slots=True)
class State:
    """The node in the state manager, the leader's phase (-1: there is none), and the two stream managers."""

    node: int = 0
    leader: int = 0
    processes: tuple[Process, Process] = (Process(), Process())
    crashes: int = 2

    def having(self, at: int, process: Process) -> State:
        """The state with another process in that place."""
        others = list(self.processes)
        others[at] = process
        return replace(self, processes=(others[0], others[1]))


def steps(state: State, rules: Rules) -> Iterator[State]:
    """Every state that can be the next one."""
    yield from of_leader(state, rules)
    for at in (0, 1):
        yield from of_process(state, at, rules)
        yield from crash(state, at)


def of_leader(state: State, rules: Rules) -> Iterator[State]:
    """It writes the next phase, learns that it is written, dies, and is followed by another one."""
    if state.leader < 0:
        # All register again, so the new leader knows nothing of them; it has just read the node.
        fresh = tuple(replace(each, registered=False, confirmed=-1) for each in state.processes)
        yield replace(state, leader=state.node, processes=(fresh[0], fresh[1]))
        return
    if state.leader < state.node:
        check_cut(state.node, [each.links[0] for each in state.processes])
        yield replace(state, leader=state.node)
    elif state.node < LAST and may_advance(state, rules):
        yield replace(state, node=state.node + 1)
    if state.crashes:
        cut = tuple(replace(each, links=(None, each.links[1])) for each in state.processes)
        yield replace(state, leader=-1, crashes=state.crashes - 1, processes=(cut[0], cut[1]))


def may_advance(state: State, rules: Rules) -> bool:
    """Whether the leader knows enough for the next phase."""
    if not rules.waits or state.node == 0:
        return True
    return all(
        each.confirmed >= state.node or (not rules.of_the_plan and not each.registered) for each in state.processes
    )


def of_process(state: State, at: int, rules: Rules) -> Iterator[State]:
    """A stream manager starts, registers, learns a phase, connects to its peer, and confirms."""
    own, peer = state.processes[at], state.processes[OTHER[at]]
    if own.phase < 0:
        # Its executor may have read the node long ago, so every phase up to the present one is possible.
        for read in range(state.node + 1) if rules.rereads else (0,):
            yield state.having(at, Process(read, registered=False, links=(None, None), confirmed=own.confirmed))
        return
    if state.leader >= 0 and not own.registered:
        yield from register(state, at, rules)
    if not own.registered:
        return
    for phase in range(own.phase + 1, state.leader + 1):  # a message of the leader, which may be an old one
        check_cut(phase, [peer.links[1]])
        yield state.having(at, replace(own, phase=phase))
    proves = PROVES[own.phase]
    if state.leader >= 0 and own.links[0] != proves:
        check_accepted(proves, state.leader, "the leader")
        yield state.having(at, replace(own, links=(proves, own.links[1])))
    if peer.phase >= 0 and peer.registered and own.links[1] != proves:
        check_accepted(proves, peer.phase, "a peer")
        yield state.having(at, replace(own, links=(own.links[0], proves)))
    renewed = own.phase < 2 or not rules.renewed or OLD not in own.links
    if state.leader >= 0 and own.confirmed < own.phase and renewed:
        yield state.having(at, replace(own, confirmed=own.phase))


def register(state: State, at: int, rules: Rules) -> Iterator[State]:
    """It proves its key to the leader. One that has no connections may be refused: it reads the node again.

    The first connection carries nothing but the registration, so its end between the two is no loss.
    """
    own = state.processes[at]
    proves = PROVES[own.phase]
    if proves not in ACCEPTS[state.leader]:
        if own.links[1] is not None:
            msg = "the leader refuses a process that has connections"
            raise BrokenError(msg)
        if rules.rereads:
            yield state.having(at, replace(own, phase=state.node))
        return
    phase = max(own.phase, state.leader) if rules.adopts else own.phase
    confirmed = -1 if rules.by_incarnation else own.confirmed
    check_cut(phase, [state.processes[OTHER[at]].links[1]])
    if rules.registers_again:
        proves = PROVES[phase]
        check_accepted(proves, state.leader, "the leader")
    new = replace(own, phase=phase, registered=True, confirmed=confirmed, links=(proves, own.links[1]))
    yield state.having(at, new)


def crash(state: State, at: int) -> Iterator[State]:
    """A stream manager dies, and its connections with it. The leader still has what it has confirmed."""
    own, peer = state.processes[at], state.processes[OTHER[at]]
    if own.phase >= 0 and state.crashes:
        gone = state.having(at, Process(-1, registered=False, links=(None, None), confirmed=own.confirmed))
        left = replace(peer, links=(peer.links[0], None))
        yield replace(gone.having(OTHER[at], left), crashes=state.crashes - 1)


def check_accepted(proved: int, phase: int, acceptor: str) -> None:
    """A connection is refused only where the keys of both sides belong to phases that never meet."""
    if proved not in ACCEPTS[phase]:
        msg = f"{acceptor} in phase {phase} refuses the keys {proved}"
        raise BrokenError(msg)


def check_cut(phase: int, arriving: list[int | None]) -> None:
    """A process that stops to accept keys ends the connections that have proved them."""
    if any(each is not None and each not in ACCEPTS[phase] for each in arriving):
        msg = f"phase {phase} cuts a connection that carries data"
        raise BrokenError(msg)


def explore(rules: Rules, crashes: int) -> dict[State, set[State]]:
    """Every reachable state with its next ones.

    Raises:
        BrokenError: when a peer is refused or a connection is cut.
    """
    start = State(crashes=crashes)
    found: dict[State, set[State]] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if state in found:
            continue
        found[state] = set(steps(state, rules))
        waiting.extend(found[state])
    return found


def is_complete(state: State) -> bool:
    """Whether nobody accepts the old keys, and all are connected with the new ones."""
    return state.leader == LAST and all(
        each.phase == LAST and each.registered and each.links == (NEW, NEW) for each in state.processes
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


@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_no_order_of_steps_and_crashes_refuses_a_peer_cuts_a_connection_or_gets_stuck(crashes: int) -> None:
    """A crash in every state, with every phase that its executor can have read."""
    found = explore(Rules(), crashes)
    assert len(found) > 50
    assert any(map(is_complete, found))
    assert stuck(found) == set()


@pytest.mark.timeout(120)
def test_a_container_that_is_away_only_delays_the_rotation() -> None:
    """While one of them neither learns nor confirms, the phase stays, and the old keys are accepted."""
    found = explore(Rules(), 0)
    waits = [state for state in found if state.processes[1].phase == 0 and state.processes[1].confirmed == 0]
    assert max(state.node for state in waits) == 1
    assert all(OLD in ACCEPTS[state.processes[0].phase] for state in waits)


@pytest.mark.parametrize(
    "rule", ["waits", "of_the_plan", "renewed", "by_incarnation", "adopts", "registers_again", "rereads"]
)
def test_each_rule_of_the_protocol_is_needed(rule: str) -> None:
    """Without it, the search finds a peer that is refused, a connection that is cut, or a rotation that cannot end."""
    try:
        found = explore(replace(Rules(), **{rule: False}), 2)
    except BrokenError:
        return
    assert stuck(found), f"nothing needs the rule {rule!r}"

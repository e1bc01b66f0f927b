"""The commands that change a simulated topology: they ask the leader, and ask again until the leader has answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from heron.api.config import takes_checkpoints
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys, ClientKind
from heron.ipc.socket import SocketContext
from heron.planner.code_change import CodeChange, encode_change, replaced
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.statemgr import NodeKind
from heron.state_nodes.plans import decode_packing_plan, decode_topology, encode_plan
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron.state_nodes.topology_keys import decode_key_ring
from heron_testing.seeded.process import SimulatedMachine
from heron_testing.seeded.stores import NEW_PACKAGE
from heron_testing.seeded.workload import new_code

if TYPE_CHECKING:
    from heron_testing.seeded.process import SimulatedProcess
    from heron_testing.seeded.stores import Nodes

__all__ = ["change_code", "resized", "update"]

_FRAME_BYTES = 1 << 20
_ATTEMPTS = 10
_ANSWER_S = 3.0
_LOOK_S = 0.02
_CANARY_S = 1.0


def resized(packing: PackingPlan, component: str, parallelism: int) -> PackingPlan:
    """The plan with another number of tasks of a component: new ones are in the smallest container."""
    containers = {each.container_id: list(each.instances) for each in packing.containers}
    tasks_of = (each for _, each in packing.instances() if each.component == component)
    present = sorted(tasks_of, key=lambda each: each.task_id)
    for leaving in present[parallelism:]:
        for tasks in containers.values():
            if leaving in tasks:
                tasks.remove(leaving)
    following = packing.next_task_id()
    for index in range(len(present), parallelism):
        smallest = min(containers, key=lambda each: (len(containers[each]), each))
        containers[smallest].append(InstancePlan(component, following, index, NO_RESOURCE))
        following += 1
    plans = tuple(ContainerPlan(number, tuple(tasks), NO_RESOURCE) for number, tasks in containers.items())
    return replace(packing, id=f"{packing.id}+", containers=plans, last_task_id=following - 1)


def update(process: SimulatedProcess, nodes: Nodes, topology: str, component: str, parallelism: int) -> int:
    """Runs the command; 0 if the leader has confirmed it. A leader may refuse it, because the topology ends."""

    def request(number: int) -> Envelope:
        packing = _packing(nodes, topology)
        wanted = encode_plan(resized(packing, component, parallelism))
        return Envelope(begin_update=pb.BeginUpdate(request_id=number, base=packing.id, document=wanted))

    return _ask(process, nodes, topology, request)


def change_code(process: SimulatedProcess, nodes: Nodes, topology: str, words: Sequence[str]) -> int:
    """Gives all tasks of a component new code, or one first, for which it decides later, or never: it was killed."""
    fiber, draw = process.world.current, process.world.draw
    assert fiber is not None
    running = decode_topology(nodes.values[NodeKind.TOPOLOGY, topology].value, topology)
    with_state = takes_checkpoints(running.config)
    component, entry = words[0], new_code(words[0], with_state=with_state)
    if component == "broken":
        component = "count" if with_state else "split"
    canary_s = _CANARY_S if len(words) > 1 else 0.0
    components = tuple(
        replace(each, entry=f"{entry.__module__}:{entry.__qualname__}") if each.name == component else each
        for each in running.components
    )
    change = CodeChange(NEW_PACKAGE, replace(running, components=components), (component,), canary_s=canary_s)

    def begins(tasks: slice, asked: CodeChange) -> Callable[[int], Envelope]:
        def request(number: int) -> Envelope:
            packing = _packing(nodes, topology)
            own = [each.task_id for _, each in packing.instances() if each.component == component]
            old = [each.task_id for _, each in packing.instances() if each.task_id in own and not each.package]
            target = encode_plan(replaced(packing, old[tasks], NEW_PACKAGE)) if old else encode_plan(packing)
            code = encode_change(asked)
            return Envelope(begin_update=pb.BeginUpdate(request_id=number, base=packing.id, document=target, code=code))

        return request

    if (code := _ask(process, nodes, topology, begins(slice(1 if canary_s else None), change))) or not canary_s:
        return code
    fiber.sleep(draw.uniform(0.3, 3.0))
    what = draw.random()
    if what < 0.5:
        return _ask(process, nodes, topology, begins(slice(None), replace(change, canary_s=0.0)))
    if what < 0.75:
        return _ask(process, nodes, topology, _withdrawal)
    return 1


def _withdrawal(number: int) -> Envelope:
    return Envelope(withdraw_update=pb.WithdrawUpdate(request_id=number, reason="it is slower"))


def _packing(nodes: Nodes, topology: str) -> PackingPlan:
    return decode_packing_plan(nodes.values[NodeKind.PACKING_PLAN, topology].value, "the simulated store")


def _ask(process: SimulatedProcess, nodes: Nodes, topology: str, request: Callable[[int], Envelope]) -> int:
    """Sends a request in some attempts, each with a new number; returns 0 if the leader has confirmed it."""
    fiber = process.world.current
    assert fiber is not None
    sockets = SocketContext(max_frame_bytes=_FRAME_BYTES, machine=SimulatedMachine(process))
    ring = decode_key_ring(nodes.values[NodeKind.KEYS, topology].value, topology)
    for attempt in range(1, _ATTEMPTS + 1):
        fiber.sleep(_LOOK_S * attempt)
        location = nodes.values.get((NodeKind.TMANAGER_LOCATION, topology))
        if location is None:
            fiber.sleep(1.0)
            continue
        keys: ClientKeys = ring.connecting_as(ClientKind.CONTROL)
        channel = sockets.client_of(decode_tmanager_location(location.value, topology).endpoint, keys=keys)
        channel.send(control_frame(request(attempt)))
        until_s = process.world.now_s + _ANSWER_S
        while process.world.now_s < until_s:
            fiber.sleep(_LOOK_S)
            while (frame := channel.receive()) is not None:
                answer = parse_control(frame)
                if body_of(answer) == "done":
                    return 0
                process.world.remark(f"{process.name} is refused: {answer.refused.reason}")
                return 1
        channel.close()
    return 1

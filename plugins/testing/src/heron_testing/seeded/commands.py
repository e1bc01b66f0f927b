"""The command that updates a simulated topology: it asks the leader, and asks again until the leader has answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.keys import ClientKeys, ClientKind
from heron.ipc.socket import SocketContext
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.statemgr import NodeKind
from heron.state_nodes.plans import decode_packing_plan, encode_plan
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron.state_nodes.topology_keys import decode_key_ring
from heron_testing.seeded.process import SimulatedMachine

if TYPE_CHECKING:
    from heron_testing.seeded.process import SimulatedProcess
    from heron_testing.seeded.stores import Nodes

__all__ = ["resized", "update"]

_FRAME_BYTES = 1 << 20
_ATTEMPTS = 10
_ANSWER_S = 3.0
_LOOK_S = 0.02


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
    fiber = process.world.current
    assert fiber is not None
    sockets = SocketContext(max_frame_bytes=_FRAME_BYTES, machine=SimulatedMachine(process))
    ring = decode_key_ring(nodes.values[NodeKind.KEYS, topology].value, topology)
    for attempt in range(1, _ATTEMPTS + 1):
        fiber.sleep(_LOOK_S * attempt)
        location = nodes.values.get((NodeKind.TMANAGER_LOCATION, topology))
        packing = decode_packing_plan(nodes.values[NodeKind.PACKING_PLAN, topology].value, "the simulated store")
        if location is None:
            fiber.sleep(1.0)
            continue
        keys: ClientKeys = ring.connecting_as(ClientKind.CONTROL)
        channel = sockets.client_of(decode_tmanager_location(location.value, topology).endpoint, keys=keys)
        wanted = encode_plan(resized(packing, component, parallelism))
        request = pb.BeginUpdate(request_id=attempt, base=packing.id, document=wanted)
        channel.send(control_frame(Envelope(begin_update=request)))
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

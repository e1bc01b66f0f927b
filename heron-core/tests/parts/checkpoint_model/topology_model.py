"""The topology of the model: its processes and links, its schedule and faults, and the check of its output."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace

from heron.api.api_constants import (
    TOPOLOGY_KEY_GROUPS,
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TopologyReliabilityMode,
)
from heron.api.definition import GroupingKind, TopologyDefinition
from heron.checkpoints.manifest import CheckpointManifest
from heron.errors import HeronError
from heron.ipc.documents.status import LeaderStatus
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan
from heron.tmanager.leader.checkpoint_progress import CheckpointReport
from heron.tmanager.leader.instructions import EndTopology, Instruction, PublishPlan, SendPlan, StoreManifest
from heron.tmanager.leader.leader import Leader
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.builders import bolt, spout, stream, subscription, topology
from heron_testing.fake_clock import FakeClock
from parts.checkpoint_model.messages import (
    GROUPS,
    KEYS,
    NUMBERS,
    Heartbeat,
    Hello,
    Key,
    Lost,
    Message,
    Saved,
    Segment,
    Sink,
    ToLeader,
)
from parts.checkpoint_model.model_stmgr import ModelStmgr
from parts.checkpoint_model.model_task import ModelTask

__all__ = ["TopologyModel"]

EVENTS = 60_000  # a run that needs more does not come to rest
FAULT_EVENTS = 2_500  # faults happen within the first events, up to this number
RESOURCE = Resource(1.0, 1 << 30, 1 << 30)
RUN = "t-1"


class LeaderDiedError(Exception):
    """The leader dies while it publishes a plan."""


class TopologyModel:
    """A topology under one schedule."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.clock = FakeClock()
        self.definition, self.packing = self.draw_topology()
        self.plan: PhysicalPlan | None = None
        self.epoch = 0
        self.written_packing = self.packing
        self.segments: dict[bytes, Segment] = {}
        self._keys: dict[int, bytes] = {}
        self.store: dict[tuple[int, int], Saved] = {}
        self.manifests: dict[int, CheckpointManifest] = {}
        self.storing: list[tuple[int, CheckpointManifest]] = []
        self.sinks: defaultdict[int, Sink] = defaultdict(Sink)
        self.tasks: dict[int, ModelTask] = {}
        self.down: dict[int, int] = {}
        self.stmgrs: dict[int, ModelStmgr] = {}
        self.incarnations: dict[tuple[str, int], int] = defaultdict(int)
        self.out: defaultdict[int, deque[Message]] = defaultdict(deque)
        self.peers: defaultdict[tuple[int, int], deque[Segment | Lost]] = defaultdict(deque)
        self.to_leader: defaultdict[int, deque[ToLeader]] = defaultdict(deque)
        self.from_leader: dict[int, deque[PhysicalPlan]] = defaultdict(deque)
        self.from_executor: deque[ProcessReport] = deque()
        self.ended = False
        self.doom = ""
        self.store_fails = 0
        self.events = 0
        self.log: list[str] = []
        self.leader: Leader | None = None
        self.faults = sorted(self.random.randrange(FAULT_EVENTS) for _ in range(self.random.randint(0, 6)))
        self.spawn(self.packing)
        self.lead()

    # --- the drawn topology

    def draw_topology(self) -> tuple[TopologyDefinition, PackingPlan]:
        """1 or 2 spouts, 1 or 2 layers of bolts, 1 to 3 tasks each, in 1 to 3 containers; maybe in two regions."""
        draw = self.random
        fields = stream("key", "number")
        spouts = [f"spout{each}" for each in range(draw.randint(1, 2))]
        layers = [*(["count"] if draw.random() < 0.7 else []), "sink"]
        apart = ["sink_apart"] if len(spouts) > 1 and draw.random() < 0.5 else []
        parallelism = {name: draw.randint(1, 3) for name in (*spouts, *layers, *apart)}
        components = [spout(name, fields, parallelism=parallelism[name]) for name in spouts]
        for name in apart:
            inputs = [subscription(spouts[-1], GroupingKind.FIELDS, "key")]
            components.append(bolt(name, *inputs, outputs=(), parallelism=parallelism[name]))
        before = spouts[:-1] if apart else spouts
        for name in layers:
            inputs = [subscription(each, GroupingKind.FIELDS, "key") for each in before]
            outputs = (fields,) if name != "sink" else ()
            components.append(bolt(name, *inputs, outputs=outputs, parallelism=parallelism[name]))
            before = [name]
        config = {
            TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
            TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: 1.0,
            TOPOLOGY_KEY_GROUPS: GROUPS,
        }
        instances = [InstancePlan(name, 0, at, RESOURCE) for name, most in parallelism.items() for at in range(most)]
        containers: dict[int, list[InstancePlan]] = {each: [] for each in range(1, draw.randint(1, 3) + 1)}
        for number, each in enumerate(instances, 1):
            free = [cid for cid, found in containers.items() if not found]
            containers[draw.choice(free or list(containers))].append(replace(each, task_id=number))
        plans = tuple(ContainerPlan(each, tuple(found), RESOURCE) for each, found in containers.items() if found)
        return topology(*components, config=config), PackingPlan("p0", plans, len(instances))

    def consumers(self, component: str) -> list[str]:
        """The components downstream."""
        return [e.name for e in self.definition.components if any(i.component == component for i in e.inputs)]

    def key_of(self, segment: Segment) -> bytes:
        """The bytes that stand for a segment in the alignment."""
        key = self._keys.get(id(segment))
        if key is None:
            key = self._keys[id(segment)] = len(self._keys).to_bytes(4, "big")
            self.segments[key] = segment
        return key

    # --- processes

    def spawn(self, packing: PackingPlan) -> None:
        """The executors start the tasks of a packing plan, and end those that have left it."""
        wanted = {each.task_id: (each.component, cid) for cid, each in packing.instances()}
        for task_id in [each for each in self.tasks if each not in wanted]:
            del self.tasks[task_id]
            self.out.pop(task_id, None)
        self.down = {each: cid for each, cid in self.down.items() if each in wanted}
        containers = {cid for _, cid in wanted.values()}
        for container_id in containers - self.stmgrs.keys():
            self.start_stmgr(container_id)
        for container_id in self.stmgrs.keys() - containers:
            del self.stmgrs[container_id]
            for pair in [each for each in self.peers if container_id in each]:
                del self.peers[pair]
        for task_id, (component, container_id) in wanted.items():
            if task_id not in self.tasks and task_id not in self.down:
                self.start_task(task_id, component, container_id)

    def start_stmgr(self, container_id: int) -> None:
        self.incarnations["stmgr", container_id] += 1
        self.stmgrs[container_id] = ModelStmgr(self, container_id, self.incarnations["stmgr", container_id])

    def start_task(self, task_id: int, component: str, container_id: int) -> None:
        self.incarnations["task", task_id] += 1
        incarnation = self.incarnations["task", task_id]
        self.tasks[task_id] = ModelTask(self, task_id, component, container_id, incarnation)
        self.out[task_id].clear()
        self.from_executor.append(
            ProcessReport(container_id, f"{component}-{task_id}", task_id, incarnation, TaskEvent.STARTED)
        )

    def deliver(self, task_id: int, incarnation: int, item: PhysicalPlan | Segment) -> None:
        """To a task, unless that incarnation is gone."""
        task = self.tasks.get(task_id)
        if task is not None and task.incarnation == incarnation and task.connected:
            task.inbox.append(item)

    def break_link(self, stmgr: ModelStmgr, container_id: int) -> None:
        """The peer was replaced: some of what was sent to the former one is lost."""
        link = self.peers[stmgr.container_id, container_id]
        lost = self.random.randint(0, len(link))
        for _ in range(lost):
            link.popleft()
        if lost:
            stmgr.note_loss()

    def lead(self) -> None:
        """A new leader takes over what is written."""
        self.epoch += 1
        self.to_leader.clear()
        self.from_leader.clear()
        self.storing = []
        self.doom = ""
        for each in self.stmgrs.values():
            each.hello_sent = False
        plan = replace(self.plan, epoch=self.epoch) if self.plan is not None else None
        given = Takeover(
            self.definition,
            self.written_packing,
            RUN,
            LeaderStatus(self.epoch, 1, "here", 0, 0.0),
            0.0,
            self.epoch - 1,
            plan,
        )
        settings = EngineSettings(checkpoint_timeout_s=30.0, update_prepare_s=60.0)
        self.leader = Leader(given, settings, self.clock)
        self.carry_out(self.leader.begin())

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """`Service._carry_out`."""
        for each in instructions:
            if isinstance(each, PublishPlan):
                doom, self.doom = self.doom, ""
                if doom == "before":
                    raise LeaderDiedError
                self.plan, self.written_packing = each.plan, each.packing
                if doom == "after":
                    raise LeaderDiedError
                for cid, stmgr in self.stmgrs.items():
                    if stmgr.hello_sent:
                        self.from_leader[cid].append(each.plan)
                self.spawn(each.packing)
            elif isinstance(each, SendPlan):
                self.from_leader[each.container_id].append(each.plan)
            elif isinstance(each, StoreManifest):
                self.storing.append((self.epoch, each.manifest))
            elif isinstance(each, EndTopology):
                assert each.report.state == "finished", each.report.error
                self.ended = True

    def handle(self, message: ToLeader) -> None:
        """`Service._handle`."""
        leader = self.leader
        assert leader is not None
        try:
            if isinstance(message, Hello):
                self.carry_out(leader.stmgr_registered(message.location, message.losses, message.by_task))
                for each in message.reports:
                    self.carry_out(leader.task_reported(each))
            elif isinstance(message, Heartbeat):
                self.carry_out(
                    leader.stmgr_heard(message.container_id, message.incarnation, message.losses, message.by_task)
                )
            elif isinstance(message, TaskReport):
                self.carry_out(leader.task_reported(message))
            elif isinstance(message, CheckpointReport):
                self.carry_out(leader.checkpoint_reported(message))
            else:
                self.carry_out(leader.process_reported(message))
        except HeronError as error:
            self.log.append(f"refused: {error}")

    # --- the schedule

    def run(self) -> None:
        """Until the topology has ended."""
        while not self.ended:
            self.events += 1
            assert self.events < EVENTS, f"seed {self.seed} does not come to rest: {self.state()}"
            try:
                if self.faults and self.events >= self.faults[0]:
                    self.faults.pop(0)
                    self.fault()
                self.one_event()
            except LeaderDiedError:
                self.log.append(f"{self.events} leader dies while it publishes")
                self.lead()

    def one_event(self) -> None:
        """One of the events that can happen now."""
        draw = self.random
        events: list[tuple[str, int, int]] = []
        events += [("step", each, 0) for each, task in self.tasks.items() if task.has_work()]
        events += [("stored", each, 0) for each, task in self.tasks.items() if task.saving is not None]
        events += [("connect", each, 0) for each, task in self.tasks.items() if not task.connected]
        events += [("out", each, 0) for each, task in self.tasks.items() if task.connected and self.out[each]]
        events += [("peer", *pair) for pair, queue in self.peers.items() if queue]
        events += [("to", each, 0) for each, queue in self.to_leader.items() if queue]
        events += [("from", each, 0) for each, queue in self.from_leader.items() if queue]
        events += [("hello", each, 0) for each, stmgr in self.stmgrs.items() if not stmgr.hello_sent]
        events += [("restart", each, 0) for each in self.down]
        if self.from_executor:
            events.append(("executor", 0, 0))
        if self.storing:
            events.append(("manifest", 0, 0))
        if not events or draw.random() < 0.05:
            self.clock.advance(draw.choice((0.05, 0.2, 0.5)) if events else 5.0)
            assert self.leader is not None
            self.carry_out(self.leader.check_due())
            return
        self.happen(*draw.choice(events))

    def happen(self, event: str, one: int, two: int) -> None:
        """Carries out an event."""
        carry_out = {
            "step": self.on_step,
            "stored": self.on_stored,
            "connect": self.on_connect,
            "out": self.on_out,
            "peer": self.on_peer,
            "to": self.on_message,
            "from": self.on_plan,
            "hello": self.on_hello,
            "restart": self.on_restart,
            "executor": self.on_executor,
            "manifest": self.on_manifest,
        }
        carry_out[event](one, two)

    def on_step(self, task_id: int, _: int) -> None:
        self.tasks[task_id].step()

    def on_stored(self, task_id: int, _: int) -> None:
        self.tasks[task_id].stored(fails=self.take_failure())

    def on_connect(self, task_id: int, _: int) -> None:
        self.stmgrs[self.tasks[task_id].container_id].connect(self.tasks[task_id])

    def on_out(self, task_id: int, _: int) -> None:
        self.stmgrs[self.tasks[task_id].container_id].receive(self.out[task_id].popleft())

    def on_peer(self, source: int, destination: int) -> None:
        item = self.peers[source, destination].popleft()
        if destination not in self.stmgrs:
            return  # its container has left the plan
        if isinstance(item, Lost):
            self.stmgrs[destination].note_loss()
        else:
            self.stmgrs[destination].route(item)

    def on_message(self, container_id: int, _: int) -> None:
        self.handle(self.to_leader[container_id].popleft())

    def on_plan(self, container_id: int, _: int) -> None:
        plan = self.from_leader[container_id].popleft()
        if container_id in self.stmgrs:
            self.stmgrs[container_id].take_plan(plan)

    def on_hello(self, container_id: int, _: int) -> None:
        self.stmgrs[container_id].register()

    def on_restart(self, task_id: int, _: int) -> None:
        container_id = self.down.pop(task_id)
        component = next(e.component for _, e in self.written_packing.instances() if e.task_id == task_id)
        self.start_task(task_id, component, container_id)

    def on_executor(self, _: int, __: int) -> None:
        self.handle(self.from_executor.popleft())

    def take_failure(self) -> bool:
        """Whether the store fails now."""
        fails = self.store_fails > 0
        self.store_fails -= fails
        return fails

    def on_manifest(self, _: int, __: int) -> None:
        """`ManifestWriter`."""
        epoch, manifest = self.storing.pop(0)
        fails = self.take_failure()
        if not fails:
            self.manifests[manifest.number] = manifest
        if epoch == self.epoch and self.leader is not None:
            self.carry_out(self.leader.manifest_stored(manifest.number, "the store failed" if fails else ""))

    # --- faults

    def fault(self) -> None:
        """One of the faults, or an update."""
        draw = self.random
        what = draw.choice(("task", "task", "stmgr", "stmgr", "leader", "doom", "link", "store", "update", "update"))
        self.log.append(f"{self.events} {what}")
        if what == "task" and self.tasks:
            self.kill_task(draw.choice(sorted(self.tasks)))
        elif what == "stmgr":
            self.kill_stmgr(draw.choice(sorted(self.stmgrs)))
        elif what == "leader":
            self.lead()
        elif what == "doom":
            self.doom = draw.choice(("before", "after"))
        elif what == "link" and self.peers:
            link = self.peers[draw.choice(sorted(self.peers))]
            kept = draw.randint(0, len(link))
            if kept < len(link):
                while len(link) > kept:
                    link.pop()
                link.append(Lost())
        elif what == "store":
            self.store_fails += 1
        elif what == "update":
            self.update()

    def kill_task(self, task_id: int) -> None:
        """Its queue is lost, and some of what it has sent. Its stream manager notices at once or at the next hello."""
        task = self.tasks.pop(task_id)
        self.log.append(f"  task {task_id}")
        out = self.out[task_id]
        out.clear()
        self.down[task_id] = task.container_id
        self.from_executor.append(
            ProcessReport(
                task.container_id, f"{task.component}-{task_id}", task_id, task.incarnation, TaskEvent.DIED, "killed"
            )
        )
        if task.connected and self.random.random() < 0.5:
            self.stmgrs[task.container_id].drop(task_id)

    def kill_stmgr(self, container_id: int) -> None:
        """Everything in it is lost, and some of what it has sent."""
        self.log.append(f"  stmgr {container_id}")
        self.start_stmgr(container_id)
        for task in self.tasks.values():
            if task.container_id == container_id:
                task.connected = False
                out = self.out[task.task_id]
                for _ in range(self.random.randint(0, len(out))):
                    out.popleft()
        for (source, _), link in self.peers.items():
            if source == container_id:
                for _ in range(self.random.randint(0, len(link))):
                    link.pop()
        self.to_leader[container_id].clear()
        self.from_leader[container_id].clear()

    def update(self) -> None:
        """A command asks for one task more, or one less, of a component."""
        draw, packing = self.random, self.written_packing
        counts = packing.parallelism()
        name = draw.choice(sorted(counts))
        containers = {each.container_id: list(each.instances) for each in packing.containers}
        members = [each for _, each in packing.instances() if each.component == name]
        last = packing.next_task_id() - 1
        if counts[name] > 1 and draw.random() < 0.5:
            leaving = max(members, key=lambda each: each.component_index)
            containers = {cid: [each for each in found if each != leaving] for cid, found in containers.items()}
        else:
            index = max(each.component_index for each in members) + 1
            target = draw.choice([*containers, max(containers) + 1])
            containers.setdefault(target, []).append(InstancePlan(name, last + 1, index, RESOURCE))
            last += 1
        plans = tuple(ContainerPlan(cid, tuple(found), RESOURCE) for cid, found in containers.items() if found)
        try:
            assert self.leader is not None
            asked = PackingPlan(f"p{self.events}", plans, last)
            self.carry_out(self.leader.update_asked(asked, packing.id))
            self.log.append(f"  {name} {counts[name]} -> {asked.parallelism()[name]}")
        except HeronError as error:
            self.log.append(f"  refused: {error}")

    # --- the oracle

    def state(self) -> str:
        """What everything waits for."""
        assert self.leader is not None
        waits = self.leader.known.status()
        tasks = {each.task_id: (each.state, each.incarnation) for each in waits.tasks}
        update = waits.update and (waits.update.phase, waits.update.waits_for)
        return f"{self.log} {waits.checkpoints} {tasks} {update}"

    def check(self) -> None:
        """Each number of each key is committed once, in order, with the right count."""
        lines: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        found = [each for sink in self.sinks.values() for each in sink.committed]
        for _, line in sorted(found, key=lambda each: each[0]):
            lines[line.key].append((line.number, line.count))
        spouts = [each.name for each in self.definition.components if not each.inputs]
        expected = {(name, k): [(n, n + 1) for n in range(NUMBERS)] for name in spouts for k in range(KEYS)}
        assert dict(lines) == expected, f"seed {self.seed}: {self.log}"

"""A stream manager of the model."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import Protocol

from heron.planner.physical_plan import HandledLosses, PhysicalPlan, PlanIndex, StreamManagerLocation
from heron.tmanager.leader.task_table import TaskEvent, TaskReport
from parts.checkpoint_model.messages import Heartbeat, Hello, Lost, Message, Segment, ToLeader
from parts.checkpoint_model.model_task import ModelTask

__all__ = ["ModelStmgr", "StmgrSurroundings"]


class StmgrSurroundings(Protocol):
    """What a stream manager uses of the model: its links."""

    peers: defaultdict[tuple[int, int], deque[Segment | Lost]]
    to_leader: defaultdict[int, deque[ToLeader]]

    def deliver(self, task_id: int, incarnation: int, item: PhysicalPlan | Segment) -> None:
        """To a task, unless that incarnation is gone."""
        ...

    def break_link(self, stmgr: ModelStmgr, container_id: int) -> None:
        """The peer was replaced: some of what was sent to the former one is lost."""
        ...


class ModelStmgr:
    """One incarnation of a stream manager."""

    def __init__(self, model: StmgrSurroundings, container_id: int, incarnation: int) -> None:
        self.model, self.container_id, self.incarnation = model, container_id, incarnation
        self.index: PlanIndex | None = None
        self.losses: Counter[int] = Counter()
        self.hello_sent = False
        self.outlets: dict[int, deque[Segment]] = defaultdict(deque)
        self.ends: dict[int, dict[int, Segment]] = defaultdict(dict)
        self.reports: dict[int, TaskReport] = {}
        self.links: dict[int, int] = {}
        self.opened: set[int] = set()

    def location(self) -> StreamManagerLocation:
        """Its address."""
        return StreamManagerLocation(self.container_id, self.incarnation, f"{self.incarnation}", "here", 1)

    def register(self) -> None:
        """`StreamManager._send_hello`."""
        self.hello_sent = True
        self.tell(Hello(self.location(), self.losses.total(), dict(self.losses), tuple(self.reports.values())))

    def tell(self, message: ToLeader) -> None:
        """To the leader; lost without a connection, because the hello repeats what matters."""
        if self.hello_sent:
            self.model.to_leader[self.container_id].append(message)

    def note_loss(self, task_id: int = 0) -> None:
        """`StreamManager._report_loss`."""
        self.losses[task_id] += 1
        self.tell(Heartbeat(self.container_id, self.incarnation, self.losses.total(), dict(self.losses)))

    def take_plan(self, plan: PhysicalPlan) -> None:
        """`StreamManager._take_plan`."""
        if self.index is not None and plan.precedes(self.index.plan):
            return
        before, self.index = self.index, PlanIndex(plan)
        for container_id, location in self.index.containers.items():
            known = before.containers.get(container_id) if before is not None else None
            if known is not None and known.incarnation != location.incarnation:
                self.model.break_link(self, container_id)
        gone = [each for each in self.outlets if each not in self.index.tasks]
        lost = sum(self.matters(segment) for each in gone for segment in self.outlets.pop(each))
        if lost:
            self.note_loss()
        self.reports = {each: report for each, report in self.reports.items() if each in self.index.tasks}
        for task_id in self.links:
            self.send_plan(task_id)
        self.pump()

    def matters(self, segment: Segment) -> bool:
        """`Router._matters`."""
        assert self.index is not None
        orders = self.index.plan.checkpoints
        return segment.kind == "row" and segment.version >= (orders.since if orders is not None else 0)

    def route(self, segment: Segment) -> None:
        """`Router._put` with `LastMarkers.notice`."""
        if segment.kind == "end":
            self.ends[segment.destination][segment.source] = segment
        if self.index is not None and segment.destination not in self.index.tasks:
            if self.matters(segment):
                self.note_loss()
            return
        self.outlets[segment.destination].append(segment)
        self.pump()

    def pump(self) -> None:
        """Sends what waits for connected tasks and for peers."""
        if self.index is None:
            return
        for task_id, queue in self.outlets.items():
            container_id = self.index.tasks[task_id].container_id
            if container_id == self.container_id and task_id in self.opened:
                while queue:
                    self.model.deliver(task_id, self.links[task_id], queue.popleft())
            elif container_id != self.container_id and container_id in self.index.containers:
                while queue:
                    self.model.peers[self.container_id, container_id].append(queue.popleft())

    def connect(self, task: ModelTask) -> None:
        """`InstanceLinks._register` and `_send_plan_to`."""
        self.drop(task.task_id)
        self.links[task.task_id] = task.incarnation
        task.connected = True
        task.session_opened()
        self.send_plan(task.task_id)
        self.pump()

    def send_plan(self, task_id: int) -> None:
        """`InstanceLinks._send_plan_to`."""
        if self.index is None or task_id not in self.index.tasks:
            return
        if task_id not in self.opened:
            if not self.losses_are_handled(self.index.plan):
                return
            self.opened.add(task_id)
            self.outlets[task_id].extend(self.ends[task_id].values())
        self.model.deliver(task_id, self.links[task_id], self.index.plan)

    def losses_are_handled(self, plan: PhysicalPlan) -> bool:
        """`StreamManager._losses_are_handled`."""
        assert plan.checkpoints is not None
        return HandledLosses(self.container_id, self.incarnation, self.losses.total()) in plan.checkpoints.losses

    def drop(self, task_id: int) -> None:
        """`InstanceLinks._drop`: a session ended."""
        self.opened.discard(task_id)
        if self.links.pop(task_id, None) is not None and (self.index is None or task_id in self.index.tasks):
            self.note_loss(task_id)

    def receive(self, message: Message) -> None:
        """A message of a local task."""
        if isinstance(message, Segment):
            self.route(message)
            return
        if isinstance(message, TaskReport):
            present = self.reports.get(message.task_id)
            since, own = (present.restores or 0 if present else -1), message.restores or 0
            if own > since or (own == since and present is not None and present.event is not TaskEvent.ENDED):
                self.reports[message.task_id] = message
        self.tell(message)

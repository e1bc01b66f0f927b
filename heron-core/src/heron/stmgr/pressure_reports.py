"""The reports about culprits of back pressure here: to the topology manager, to the peers, and in the events."""

from __future__ import annotations

from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.locator import TManagerChannel
from heron.stmgr.back_pressure import Culprits
from heron.stmgr.event_buffer import EventBuffer
from heron.stmgr.instance_links import InstanceLinks
from heron.stmgr.link_context import LinkContext
from heron.stmgr.peer_links import PeerLinks

__all__ = ["PressureReports"]


class PressureReports:
    """The culprits that were reported, each with the cause that was reported last."""

    def __init__(
        self,
        context: LinkContext,
        culprits: Culprits,
        instances: InstanceLinks,
        peers: PeerLinks,
        tmanager: TManagerChannel,
        events: EventBuffer,
    ) -> None:
        self._context = context
        self._culprits = culprits
        self._instances = instances
        self._peers = peers
        self._tmanager = tmanager
        self._events = events
        self._causes: dict[int, str] = {}

    def update(self, congested: frozenset[int]) -> None:
        """Takes the tasks that are congested now; reports those that are new, and those that are not any more."""
        for change in self._culprits.update(congested, monotonic_s()):
            cause = self._causes.pop(change.task_id, "")
            if change.on:
                cause = self._causes[change.task_id] = self._cause(change.task_id)
            pressure = self._pressure(change.task_id, on=change.on)
            self._tmanager.send(Envelope(pressure=pressure))
            self._peers.send_pressure(pressure)
            self._context.pressure.report_own(change.task_id, on=change.on)
            self._events.pressure_changed(change, cause)

    def repeat(self) -> None:
        """Reports every present culprit to a topology manager that may be new."""
        for task_id in self._culprits.present():
            self._tmanager.send(Envelope(pressure=self._pressure(task_id, on=True)))

    def report_causes(self) -> None:
        """Reports to the topology manager the culprits whose cause has changed."""
        for task_id, before in tuple(self._causes.items()):
            self._causes[task_id] = self._cause(task_id)
            if self._causes[task_id] != before:
                self._tmanager.send(Envelope(pressure=self._pressure(task_id, on=True)))

    def _pressure(self, task_id: int, *, on: bool) -> pb.Pressure:
        outlet = self._context.router.outlets.get(task_id)
        return pb.Pressure(
            task_id=task_id,
            container_id=self._context.spec.container_id,
            on=on,
            buffered_bytes=outlet.queued_bytes if outlet else 0,
            cause=self._causes.get(task_id, ""),
        )

    def _cause(self, task_id: int) -> str:
        """Why the outlet of a task is congested."""
        context, outlet = self._context, self._context.router.outlets.get(task_id)
        reached = outlet is None or outlet.window is not None
        if task_id in context.local.ids:
            if not reached:
                return "the task is not running"
            others = self._instances.waits_for(task_id)
            return f"its output waits for task {', '.join(map(str, others))}" if others else "the task is slow"
        container_id = self._peers.container_of(task_id)
        if not reached or container_id in self._peers.reach.silent_s(monotonic_s()):
            return f"container {container_id} is not reached"
        # A slow task fills the outlet of its own stream manager first, which reports it before it holds credit back.
        if context.pressure.is_reported_by(container_id, task_id):
            return "the task is slow"
        return f"the stream manager of container {container_id} is slow, or the network to it"

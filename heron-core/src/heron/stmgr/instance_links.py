"""Registration of local instances, and their sessions.

An instance waits on a socket of its own, made for one session, and says hello on the registration socket; the stream
manager connects to it. So a session is a pair of sockets: when either side goes, nothing of the old session can reach
the new one, and one instance that breaks the rules can be dropped alone (design D17).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

from heron.errors import HeronError, RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import registration_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.frame import WIRE_VERSION
from heron.stmgr.back_pressure import SpoutChange
from heron.stmgr.instance_link import InstanceLink
from heron.stmgr.link_host import FRAMES_A_ROUND, LinkHost
from heron.stmgr.task_reports import TaskReports

__all__ = ["InstanceLinks"]

_log = logging.getLogger(__name__)


class InstanceLinks:
    """All local instances of a stream manager."""

    def __init__(
        self,
        host: LinkHost,
        reports: TaskReports,
        on_report: Callable[[pb.TaskReport], None],
        on_lost: Callable[[int], None],
    ) -> None:
        self._host = host
        self._reports = reports
        self._on_report = on_report
        self._on_lost = on_lost
        self._links: dict[int, InstanceLink] = {}
        self._sessions = itertools.count(1)
        self._plan: Envelope | None = None
        self._hub = host.sockets.hub(registration_endpoint(host.run_dir, host.spec.container_id))
        host.reactor.on_readable(self._hub, self._read_hub)

    def send_plan(self, plan: Envelope) -> None:
        """Gives every instance, now or when it registers, the physical plan."""
        self._plan = plan
        for link in self._links.values():
            self._welcome_to_plan(link)

    def send(self, task_id: int, envelope: Envelope) -> None:
        """Sends a control message to one instance, if it is registered."""
        link = self._links.get(task_id)
        if link is not None:
            link.send_control(envelope)

    def waits_for(self, task_id: int) -> tuple[int, ...]:
        """The tasks with full outlets on account of which a local task cannot send."""
        link = self._links.get(task_id)
        return self._host.router.waits_for(link) if link is not None else ()

    def hold_back(self, change: SpoutChange) -> None:
        """Holds a spout back on account of a culprit, or no longer, and tells it."""
        link = self._links.get(change.task_id)
        if link is not None:
            link.held_back = bool(self._host.pressure.culprits_of(change.task_id))
            pressure = pb.Pressure(task_id=change.culprit, container_id=self._host.spec.container_id, on=change.on)
            link.send_control(Envelope(pressure=pressure))

    def pump(self, task_id: int) -> bool:
        """Sends what waits for a local task; False when the task is not one."""
        link = self._links.get(task_id)
        if link is None:
            return task_id in self._host.spec.task_ids
        outlet = self._host.router.outlets.get(task_id)
        if outlet is not None:
            self._host.counters.bytes_to_instances += link.pump(outlet)
        return True

    def send_acks(self, task_id: int, segments: list[bytes]) -> None:
        """Tells a local task what became of its roots; one that is gone needs not know."""
        link = self._links.get(task_id)
        if link is not None:
            link.send_acks(segments)

    def send_credits(self) -> None:
        """Tells every instance what was released in this round."""
        for link in self._links.values():
            link.send_credit()

    def _read_hub(self) -> None:
        while (message := self._hub.receive()) is not None:
            identity, frame = message
            try:
                self._register(parse_control(frame))
            except HeronError as error:
                self._host.counters.refused_frames += 1
                _log.warning("registration refused: %s", error)
                self._hub.send(identity, control_frame(Envelope(refused=pb.Refused(reason=str(error)))))

    def _register(self, envelope: Envelope) -> None:
        if body_of(envelope) != "instance_hello":
            msg = f"{body_of(envelope)} on the registration socket"
            raise RemoteProtocolError(msg)
        hello = envelope.instance_hello
        if hello.wire_version != WIRE_VERSION:
            msg = f"task {hello.task_id} speaks wire version {hello.wire_version}, this side {WIRE_VERSION}"
            raise RemoteProtocolError(msg)
        if hello.task_id not in self._host.spec.task_ids:
            msg = (
                f"task {hello.task_id} is not one of container {self._host.spec.container_id}: "
                f"{', '.join(map(str, self._host.spec.task_ids))}"
            )
            raise RemoteProtocolError(msg)
        present = self._links.get(hello.task_id)
        if present is not None and hello.incarnation < present.incarnation:
            msg = f"task {hello.task_id}: incarnation {hello.incarnation} after {present.incarnation}"
            raise RemoteProtocolError(msg)
        if present is not None and hello.endpoint == present.endpoint:
            return  # said again before the welcome came
        if present is not None:
            self._drop(present)
        self._open(hello)

    def _open(self, hello: pb.InstanceHello) -> None:
        host = self._host
        channel = host.sockets.channel_to(hello.endpoint)
        link = InstanceLink(hello, channel, next(self._sessions))
        self._links[hello.task_id] = link
        host.reactor.on_readable(channel, lambda: self._read(link))
        host.reactor.on_disconnect(channel, lambda: self._drop(link))
        window_bytes = host.settings.link_window_bytes
        culprits = host.pressure.culprits_of(hello.task_id)
        link.held_back = bool(culprits)
        link.send_control(
            Envelope(
                instance_welcome=pb.InstanceWelcome(
                    session=link.session,
                    window_bytes=window_bytes,
                    grant_bytes=window_bytes,
                    ended=self._reports.ended(hello.task_id),
                    culprits=culprits,
                )
            )
        )
        _log.info("task %d registered, incarnation %d", hello.task_id, hello.incarnation)
        if self._plan is not None:
            self._welcome_to_plan(link)

    def _welcome_to_plan(self, link: InstanceLink) -> None:
        assert self._plan is not None  # noqa: S101  # both callers have seen it
        link.send_control(self._plan)
        outlet = self._host.router.outlets.get(link.task_id)
        if outlet is not None and outlet.window is None:
            outlet.open(self._host.settings.link_window_bytes)
            self._host.router.resend_end_markers(link.task_id)
            self._host.router.touched.add(link.task_id)

    def _read(self, link: InstanceLink) -> None:
        try:
            for _ in range(FRAMES_A_ROUND):
                frame = link.channel.receive()
                if frame is None:
                    return
                control = link.handle(frame, self._host.router, self._host.counters)
                if control is not None:
                    self._handle_control(parse_control(control))
        except RemoteProtocolError as error:
            self._host.counters.refused_frames += 1
            _log.error("session of task %d ended: %s", link.task_id, error)
            self._drop(link)

    def _handle_control(self, envelope: Envelope) -> None:
        if body_of(envelope) != "task_report":
            msg = f"{body_of(envelope)} from an instance"
            raise RemoteProtocolError(msg)
        self._reports.note(envelope.task_report)
        self._on_report(envelope.task_report)

    def _drop(self, link: InstanceLink) -> None:
        if self._links.get(link.task_id) is link:
            del self._links[link.task_id]
            outlet = self._host.router.outlets.get(link.task_id)
            if outlet is not None:
                outlet.close()
            _log.info("session of task %d is over", link.task_id)
            self._on_lost(link.task_id)
        self._host.router.forget(link)
        self._host.reactor.forget(link.channel)
        link.channel.close()

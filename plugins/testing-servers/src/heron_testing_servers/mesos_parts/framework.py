"""What the Mesos test server knows of a framework: its subscription, its filters, and its tasks."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from heron_testing_servers.mesos_parts.resources import UNRESERVED, Resources

__all__ = ["Framework", "MasterTask", "Subscription"]

Json = dict[str, Any]

_LOOK_S = 0.1  # how soon the end of a connection is noticed


class Subscription:
    """The answer to a SUBSCRIBE: a stream of events as records (RecordIO), until one side closes the connection."""

    def __init__(self, stream_id: str, on_end: Callable[[Subscription], None]) -> None:
        """`on_end` is called from the thread of the connection when it has ended."""
        self.id = stream_id
        self._on_end = on_end
        self._events: queue.SimpleQueue[Json | None] = queue.SimpleQueue()

    def send(self, event: Json) -> None:
        """Send an event."""
        self._events.put(event)

    def finish(self) -> None:
        """End the stream behind the events that were sent."""
        self._events.put(None)

    def close(self) -> None:
        """Note that the connection has ended."""
        self._on_end(self)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            event = self._events.get(timeout=_LOOK_S)
        except queue.Empty:
            return b""
        if event is None:
            raise StopIteration
        data = json.dumps(event).encode()
        return b"%d\n%b" % (len(data), data)


@dataclass(slots=True)
class MasterTask:
    """A task as the master sees it."""

    info: Json
    agent_id: str
    status: Json
    """The last update; without one, a status with TASK_STAGING."""
    sent: tuple[str, str] = ("", "")
    """The last update that was sent, and the stream."""
    sent_at_s: float = 0.0
    unreachable: bool = False
    resources: Resources = field(default_factory=Resources)

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.info["task_id"]["value"])


@dataclass(slots=True)
class Framework:
    """A framework, also one that is disconnected."""

    id: str
    info: Json
    subscription: Subscription | None = None
    disconnected_at_s: float = 0.0
    heartbeat_at_s: float = 0.0
    suppressed: set[str] = field(default_factory=set)
    filters: dict[tuple[str, str], list[tuple[Resources, float]]] = field(default_factory=dict)
    """What was refused, by role and agent, and until when."""
    tasks: dict[str, MasterTask] = field(default_factory=dict)
    completed: list[MasterTask] = field(default_factory=list)

    @property
    def roles(self) -> list[str]:
        """Its roles: `roles` with the capability MULTI_ROLE, otherwise `role`."""
        if self.has("MULTI_ROLE"):
            return list(self.info.get("roles", ()))
        return [self.info.get("role", UNRESERVED)]

    @property
    def principal(self) -> str:
        """The principal of its `FrameworkInfo`."""
        return str(self.info.get("principal", ""))

    def has(self, capability: str) -> bool:
        """Return whether it has a capability."""
        return capability in {each.get("type") for each in self.info.get("capabilities", ())}

    def send(self, event: Json) -> None:
        """Send an event; it is lost if the framework is disconnected."""
        if self.subscription is not None:
            self.subscription.send(event)

    def send_status(self, status: Json) -> None:
        """Send an update."""
        self.send({"type": "UPDATE", "update": {"status": status}})

    def state_for(self, partition_aware: str) -> str:
        """Return a state that only frameworks with PARTITION_AWARE know, or TASK_LOST."""
        return partition_aware if self.has("PARTITION_AWARE") else "TASK_LOST"

    def refuse(self, role: str, agent_id: str, resources: Resources, until_s: float) -> None:
        """Offer no part of these resources again until then."""
        self.filters.setdefault((role, agent_id), []).append((resources, until_s))

    def wants(self, role: str, agent_id: str, resources: Resources, now_s: float) -> bool:
        """Return whether neither a filter nor SUPPRESS holds an offer back."""
        left = [each for each in self.filters.pop((role, agent_id), ()) if each[1] > now_s]
        if left:
            self.filters[role, agent_id] = left
        return role not in self.suppressed and not any(refused.contains(resources) for refused, _ in left)

    def revive(self, roles: list[str]) -> None:
        """Remove the filters of roles (of all without any), and offer again."""
        for role in roles or self.roles:
            self.suppressed.discard(role)
            for key in [each for each in self.filters if each[0] == role]:
                del self.filters[key]

    def suppress(self, roles: list[str]) -> None:
        """Make no offers for roles (for all without any)."""
        self.suppressed.update(roles or self.roles)

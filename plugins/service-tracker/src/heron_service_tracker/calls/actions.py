"""Changes topologies with the control key, where the operator allows it.

An action takes up to minutes, so it runs in a thread, and its request returns at once. Nothing is done that the audit
file does not have. A tracker that ends does not wait: the topology completes an update, and a kill can be repeated.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque

import msgspec

from heron.clock import Clock
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, StoreError
from heron_cli.client import Client
from heron_service_tracker.calls.action_items import ActionItem, ActionRequest
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.calls.task_observers import OpenCluster
from heron_service_tracker.request_errors import BusyError

__all__ = ["Actions"]

_KEPT = 50  # of one topology
_MOST_PLACES = 1000  # topologies; the audit file has the actions on all of them

_log = logging.getLogger(__name__)


class Actions:
    """The actions of a tracker. `open_cluster` opens a client that may change topologies. Thread-safe."""

    def __init__(self, open_cluster: OpenCluster, audit: AuditFile, clock: Clock) -> None:
        self._open_cluster = open_cluster
        self._audit = audit
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._items: dict[tuple[str, str], deque[ActionItem]] = {}

    def items(self, cluster: str, topology: str) -> tuple[ActionItem, ...]:
        """Return the newest actions on a topology, newest first."""
        with self._lock:
            return tuple(self._items.get((cluster, topology), ()))

    def begin(self, cluster: str, topology: str, request: ActionRequest, sender: str) -> ActionItem:
        """Begin an action, and return it.

        Raises:
            BusyError: when another action on the topology is under way.
            StoreError: when it cannot be audited; nothing is done then.
        """
        place = cluster, topology
        with self._lock:
            items = self._items.setdefault(place, deque(maxlen=_KEPT))
            if items and items[0].state == "running":
                msg = f"topology {topology!r}: {items[0].action} is under way; wait for its end"
                raise BusyError(msg)
            began_at_s = self._clock.wall_s()
            item = ActionItem(next(self._numbers), request.action, request.detail, sender, began_at_s)
            self._write(place, item)
            items.appendleft(item)
            self._forget_one()
        thread = threading.Thread(target=self._run, args=(place, request, item), name="action", daemon=True)
        thread.start()
        return item

    def _forget_one(self) -> None:
        if len(self._items) > _MOST_PLACES:
            ended = (place for place, items in self._items.items() if not items or items[0].state != "running")
            if (oldest := next(ended, None)) is not None:
                del self._items[oldest]

    def _run(self, place: tuple[str, str], request: ActionRequest, item: ActionItem) -> None:
        state = "failed"
        try:
            with self._open_cluster(place[0]) as client:
                text = _carried_out(client, place[1], request)
            state = "done"
        except HeronError as error:
            text = redact_for_command(str(error))
        except Exception as error:
            _log.exception("the action %s on %s failed", request.action, place[1])
            text = type(error).__name__
        ended = msgspec.structs.replace(item, state=state, text=text, ended_at_s=self._clock.wall_s())
        with self._lock:
            self._items[place][0] = ended
        try:
            self._write(place, ended)
        except StoreError as error:
            _log.warning("the end of action %s is not audited: %s", item.number, error)

    def _write(self, place: tuple[str, str], item: ActionItem) -> None:
        self._audit.append(cluster=place[0], topology=place[1], **msgspec.structs.asdict(item))


def _carried_out(client: Client, topology: str, request: ActionRequest) -> str:
    """Do it, and return the outcome for people."""
    if request.action in {"activate", "deactivate"}:
        change = client.activate(topology) if request.action == "activate" else client.deactivate(topology)
        same = change.before == change.state
        return f"it was {change.state} already" if same else f"it was {change.before}, and is {change.state}"
    if request.action == "checkpoint":
        return f"checkpoint {client.take_checkpoint(topology)} is complete"
    if request.action == "restart":
        done = client.restart(topology, request.container)
        return ", ".join(f"container {each.container_id} runs again after {each.took_s:.1f} s" for each in done)
    if request.action == "update":
        update = client.update(topology, request.parallelism)
        return "nothing was to change" if update.took_s is None else f"it was complete after {update.took_s:.1f} s"
    result = client.kill(topology)
    return "; ".join(("it has ended", result.why, *result.left)) if result.why or result.left else "it has ended"

"""What a person may ask a topology to do, and what became of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from heron.errors import UsageError
from heron.spi.typed_values import decode_json
from heron_service_tracker.request_errors import MalformedQueryError

__all__ = ["ActionItem", "ActionRequest", "ActionsAnswer", "decode_request"]

_MOST_TASKS = 100_000  # of a component; the planner has its own limits

Name = Literal["activate", "deactivate", "checkpoint", "restart", "update", "kill"]


class ActionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request. `confirm` repeats the name of the topology.

    Only ``restart`` takes a `container`; None means all of them. Only ``update`` takes `parallelism`, the new numbers
    of tasks by component.
    """

    action: Name
    confirm: str
    container: int | None = None
    parallelism: dict[str, int] = {}

    @property
    def detail(self) -> str:
        """What the action is about, for people; "" is the whole topology."""
        if self.container is not None:
            return f"container {self.container}"
        return ", ".join(f"{name} {number}" for name, number in self.parallelism.items())


class ActionItem(msgspec.Struct, frozen=True):
    """An action: `state` is ``running``, ``done`` or ``failed``, and `text` its outcome for people.

    `sender` is the address that asked. `ended_at_s` is None while it runs; times are wall-clock seconds.
    """

    number: int
    action: str
    detail: str
    sender: str
    began_at_s: float
    state: str = "running"
    text: str = ""
    ended_at_s: float | None = None


class ActionsAnswer(msgspec.Struct, frozen=True):
    """The newest actions on a topology since the tracker began, newest first."""

    items: tuple[ActionItem, ...]
    age_s: float = 0.0
    error: str = ""


def decode_request(body: bytes, topology: str) -> ActionRequest:
    """Return the request of a body.

    Raises:
        MalformedQueryError: when it is not a request, or does not fit its action.
        UsageError: when it does not confirm the topology.
    """
    try:
        request = decode_json(body, ActionRequest)
    except msgspec.MsgspecError as error:
        msg = f"the request is not an action: {error}"
        raise MalformedQueryError(msg) from error
    if request.container is not None and (request.action != "restart" or request.container < 0):
        msg = f"container {request.container}: only `restart` takes a container, from 0"
        raise MalformedQueryError(msg)
    if bool(request.parallelism) != (request.action == "update"):
        msg = "`update` takes the numbers of tasks as `parallelism`, and no other action does"
        raise MalformedQueryError(msg)
    for name, number in request.parallelism.items():
        if not 1 <= number <= _MOST_TASKS:
            msg = f"parallelism of {name!r}: {number} is not a number of tasks from 1 to {_MOST_TASKS:,}"
            raise MalformedQueryError(msg)
    if request.confirm != topology:
        msg = f"`confirm` is {request.confirm!r}: repeat the name of the topology, {topology!r}"
        raise UsageError(msg)
    return request

"""What the driver tells a task to run; it travels in Spark's own task description, and so holds no secret."""

from __future__ import annotations

import msgspec

__all__ = ["Order"]


class Order(msgspec.Struct, frozen=True):
    """One start of a container.

    `ticket` is this start's own; who shows it a second time comes too late. `core` is the version of heron-core that
    the worker has to have. `endpoint` is the driver's, whose keys the task reads in `key_file`, or where there is none
    in the state manager of the spec. The spec stands in `spec_file` where the task sees the driver's files, else in
    `spec`, with references in place of secrets. `command` runs the executor; it is empty for the one of the worker's
    interpreter. A task that hears nothing of the driver for `silence_s` ends its container.
    """

    container_id: int
    ticket: str
    endpoint: str
    core: str
    silence_s: float
    grace_s: float
    command: tuple[str, ...] = ()
    key_file: str = ""
    spec_file: str = ""
    spec: dict[str, object] | None = None

"""A message of a child. One class has the fields of all commands: that decodes fastest."""

from __future__ import annotations

import msgspec

__all__ = ["ChildMessage"]


class ChildMessage(msgspec.Struct):
    """A message; what a command needs is checked when it is carried out. `values` is the field ``tuple``."""

    command: str = ""
    id: object = None
    values: list[object] | None = msgspec.field(name="tuple", default=None)
    stream: str | None = None
    anchors: list[str] | str | None = None
    task: int | None = None
    need_task_ids: bool | None = None
    msg: object = None
    level: int | None = None
    name: str | None = None
    params: object = None
    pid: int | None = None

    @property
    def wants_task_ids(self) -> bool:
        """Whether an emit waits for the ids of the receiving tasks; a direct emit never does."""
        return self.need_task_ids is not False and not self.task

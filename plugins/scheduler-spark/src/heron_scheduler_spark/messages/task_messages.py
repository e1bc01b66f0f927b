"""What the driver and the tasks send each other: `Order` inside Spark's task, then JSON messages over the link.

Each message is one frame. The tags are part of the exchange between driver and task, which have the same version.
"""

from __future__ import annotations

import enum

import msgspec

__all__ = [
    "FRAME_BYTES",
    "ContainerEnded",
    "DriverCommand",
    "ExecutorStarted",
    "LogText",
    "Order",
    "StartFailed",
    "TaskHeartbeat",
    "TaskHello",
    "TaskMessage",
    "decode_task_message",
]

FRAME_BYTES = 1 << 20
"""The largest frame in either direction: a piece of a log has 64 KiB, so a larger one comes from a stranger."""


class Order(msgspec.Struct, frozen=True):
    """One start of a container. It travels in Spark's task description, so it holds no secret.

    - `ticket` identifies this start; the driver refuses a ticket that it has seen before.
    - `core` is the version of heron-core that the worker must have.
    - `endpoint` is the address of the driver. Its keys are in `key_file`, or in the state manager if that is "".
    - `spec_file` holds the spec where the task sees the files of the driver. Elsewhere `spec` holds it, with references
      in place of secrets.
    - `command` runs the executor; empty for the executor of the worker's interpreter.
    - `py_files` are the names of the files of code that Spark copied for the task.
    - A task that receives nothing from the driver for `silence_s` ends its container.
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
    py_files: tuple[str, ...] = ()
    spec: dict[str, object] | None = None


class DriverCommand(enum.Enum):
    """From the driver: ``go`` or ``leave`` answer a `TaskHello`; the others come at any time."""

    GO = "go"
    LEAVE = "leave"
    BEAT = "beat"
    TERMINATE = "terminate"
    KILL = "kill"


class TaskHello(msgspec.Struct, frozen=True, tag_field="say", tag="hello"):
    """The first message of a task, with the ticket of its order."""

    ticket: str
    host: str


class ExecutorStarted(msgspec.Struct, frozen=True, tag_field="say", tag="up"):
    """The executor runs; `begun` distinguishes its process from others with the same pid."""

    pid: int
    begun: str


class StartFailed(msgspec.Struct, frozen=True, tag_field="say", tag="refused"):
    """The executor cannot be started."""

    error: str


class TaskHeartbeat(msgspec.Struct, frozen=True, tag_field="say", tag="beat"):
    """The task runs."""


class LogText(msgspec.Struct, frozen=True, tag_field="say", tag="log"):
    """Text that was added to the log file with that name."""

    file: str
    text: str


class ContainerEnded(msgspec.Struct, frozen=True, tag_field="say", tag="ended"):
    """The last message of a task: the executor and all its processes have ended.

    `error` is "" after a clean end. `own` is true when the executor failed by itself.
    """

    error: str
    own: bool = False


TaskMessage = TaskHello | ExecutorStarted | StartFailed | TaskHeartbeat | LogText | ContainerEnded

_decoder = msgspec.json.Decoder(TaskMessage)


def decode_task_message(frame: bytes) -> TaskMessage | None:
    """Return the message of a task in a frame; None when the frame holds no such message."""
    try:
        message: TaskMessage = _decoder.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return message

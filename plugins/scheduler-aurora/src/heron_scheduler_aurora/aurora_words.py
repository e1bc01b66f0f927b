"""The enumerations of Aurora's interface, by which the driver decides. Pure."""

from __future__ import annotations

import enum

__all__ = ["ACTIVE", "UPDATING", "ResponseCode", "TaskStatus", "UpdateStatus"]


class ResponseCode(enum.IntEnum):
    """How a request has ended."""

    INVALID_REQUEST = 0
    OK = 1
    ERROR = 2
    WARNING = 3
    AUTH_FAILED = 4
    JOB_UPDATING_ERROR = 5
    ERROR_TRANSIENT = 6


class TaskStatus(enum.IntEnum):
    """The state of a task."""

    PENDING = 0
    STARTING = 1
    RUNNING = 2
    FINISHED = 3
    FAILED = 4
    KILLED = 5
    KILLING = 6
    LOST = 7
    ASSIGNED = 9
    INIT = 11
    RESTARTING = 12
    PREEMPTING = 13
    THROTTLED = 16
    DRAINING = 17
    PARTITIONED = 18


class UpdateStatus(enum.IntEnum):
    """The state of a job update."""

    ROLLING_FORWARD = 0
    ROLLING_BACK = 1
    ROLL_FORWARD_PAUSED = 2
    ROLL_BACK_PAUSED = 3
    ROLLED_FORWARD = 4
    ROLLED_BACK = 5
    ABORTED = 6
    ERROR = 7
    FAILED = 8
    ROLL_FORWARD_AWAITING_PULSE = 9
    ROLL_BACK_AWAITING_PULSE = 10


ACTIVE = frozenset(TaskStatus) - {TaskStatus.FINISHED, TaskStatus.FAILED, TaskStatus.KILLED, TaskStatus.LOST}
"""The states of tasks that run, will run or are being ended."""

UPDATING = frozenset(
    {
        UpdateStatus.ROLLING_FORWARD,
        UpdateStatus.ROLLING_BACK,
        UpdateStatus.ROLL_FORWARD_PAUSED,
        UpdateStatus.ROLL_BACK_PAUSED,
        UpdateStatus.ROLL_FORWARD_AWAITING_PULSE,
        UpdateStatus.ROLL_BACK_AWAITING_PULSE,
    }
)
"""The states in which a job update lets no other change of its job begin."""

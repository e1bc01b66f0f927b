"""The statuses whose documents are pinned: the newest form, and those of earlier versions."""

from __future__ import annotations

from dataclasses import replace

from heron.ipc.documents.status import (
    CheckpointStatus,
    CodeStatus,
    ComponentStatus,
    Culprit,
    KeysStatus,
    LeaderStatus,
    LongCallStatus,
    ProcessStatus,
    SinkOutage,
    StandbyStatus,
    TaskStatus,
    TopologyStatus,
    Unreached,
    UpdateStatus,
    UserErrorStatus,
)

__all__ = ["FORMER_STATUSES", "STATUS_WITH_CODE"]

STATUS = TopologyStatus(
    topology="words",
    topology_id="words-1",
    state="running",
    started_at_s=1_700_000_000.5,
    plan_version=3,
    first_tuple_at_s=1_700_000_001.0,
    components=(ComponentStatus("count", "bolt", 1, executed=12, latency_s=0.001),),
    tasks=(TaskStatus(3, "count", 1, "running", 65536),),
    backpressure=(Culprit(3, "count", 1, 1_700_000_002.0),),
    errors=("no",),
)
STATUS_WITH_PROCESSES = replace(
    STATUS,
    processes=(
        ProcessStatus(1, "executor", "running", 10, 65536, host="here"),
        ProcessStatus(1, "count-3", "restarting", 0, 65537, 3, 1, "here", "killed by SIGKILL"),
    ),
)
STATUS_OF_TROUBLES = replace(
    STATUS_WITH_PROCESSES,
    outages=(SinkOutage("graphite", 1, 12.5),),
    leader=LeaderStatus(1, 21, "here", 7, 40.0),
    standbys=(StandbyStatus(0, 20, "here", "running"),),
    unreached=(Unreached(2, 1, 80.5),),
)
STATUS_WITH_REASONS = replace(
    STATUS_OF_TROUBLES, outages=(SinkOutage("graphite", 1, 12.5, "flush: connection refused"),)
)
STATUS_WITH_UPDATE = replace(STATUS_WITH_REASONS, update=UpdateStatus(4, "switch", "rr-2", (4,), (2,), "task 2"))
STATUS_WITH_CHECKPOINTS = replace(
    STATUS_WITH_UPDATE, checkpoints=CheckpointStatus(8, 7, 40.5, 0.25, 4096, 0.125, 3, 1, "disk full", 1, "words-1/7")
)
STATUS_WITH_LONG_CALLS = replace(
    STATUS_WITH_CHECKPOINTS, long_calls=(LongCallStatus(3, "count", "process", "words.py, line 7", 1_700_000_003.0),)
)
STATUS_WITH_REPORTED_TASKS = replace(
    STATUS_WITH_LONG_CALLS,
    components=(ComponentStatus("count", "bolt", 1, executed=12, latency_s=0.001, reported_tasks=1),),
)
STATUS_WITH_KEYS = replace(
    STATUS_WITH_REPORTED_TASKS,
    keys=(KeysStatus(("old", "new"), False, (1, 2)), KeysStatus(("new",), True, (3,))),
)
STATUS_WITH_FAILED_NUMBER = replace(
    STATUS_WITH_KEYS,
    checkpoints=CheckpointStatus(8, 7, 40.5, 0.25, 4096, 0.125, 3, 1, "disk full", 1, "words-1/7", failed_number=6),
)
STATUS_WITH_USER_ERRORS = replace(
    STATUS_WITH_FAILED_NUMBER,
    user_errors=(
        UserErrorStatus(
            "count",
            "process: ValueError at words.py, line 3",
            140,
            {3: 140},
            1_700_000_004.0,
            1_700_000_005.5,
            "ValueError",
            "words.py, line 3",
            "no",
            "Traceback",
        ),
    ),
)
STATUS_WITH_SHED = replace(
    STATUS_WITH_USER_ERRORS,
    components=(ComponentStatus("lines", "spout", 1, emitted=12, reported_tasks=1, shed=3),),
)
STATUS_WITH_CODE = replace(
    STATUS_WITH_SHED, code=CodeStatus("file:///packages/2", "canary", ("count",), (4,), "nobody has decided")
)
FORMER_STATUSES = {
    "status": STATUS,
    "status-with-processes": STATUS_WITH_PROCESSES,
    "status-of-troubles": STATUS_OF_TROUBLES,
    "status-with-reasons": STATUS_WITH_REASONS,
    "status-with-update": STATUS_WITH_UPDATE,
    "status-with-checkpoints": STATUS_WITH_CHECKPOINTS,
    "status-with-long-calls": STATUS_WITH_LONG_CALLS,
    "status-with-reported-tasks": STATUS_WITH_REPORTED_TASKS,
    "status-with-keys": STATUS_WITH_KEYS,
    "status-with-failed-number": STATUS_WITH_FAILED_NUMBER,
    "status-with-user-errors": STATUS_WITH_USER_ERRORS,
    "status-with-shed": STATUS_WITH_SHED,
}

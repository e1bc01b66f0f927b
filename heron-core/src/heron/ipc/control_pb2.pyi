from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_PHASE_UNSPECIFIED: _ClassVar[TaskPhase]
    TASK_PHASE_RUNNING: _ClassVar[TaskPhase]
    TASK_PHASE_FAILED: _ClassVar[TaskPhase]
    TASK_PHASE_ENDED: _ClassVar[TaskPhase]
    TASK_PHASE_LEFT: _ClassVar[TaskPhase]

class CheckpointPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKPOINT_PHASE_UNSPECIFIED: _ClassVar[CheckpointPhase]
    CHECKPOINT_PHASE_SAVED: _ClassVar[CheckpointPhase]
    CHECKPOINT_PHASE_FAILED: _ClassVar[CheckpointPhase]
    CHECKPOINT_PHASE_COMMITTED: _ClassVar[CheckpointPhase]

class ProcessPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROCESS_PHASE_UNSPECIFIED: _ClassVar[ProcessPhase]
    PROCESS_PHASE_STARTED: _ClassVar[ProcessPhase]
    PROCESS_PHASE_DIED: _ClassVar[ProcessPhase]
    PROCESS_PHASE_GIVEN_UP: _ClassVar[ProcessPhase]
TASK_PHASE_UNSPECIFIED: TaskPhase
TASK_PHASE_RUNNING: TaskPhase
TASK_PHASE_FAILED: TaskPhase
TASK_PHASE_ENDED: TaskPhase
TASK_PHASE_LEFT: TaskPhase
CHECKPOINT_PHASE_UNSPECIFIED: CheckpointPhase
CHECKPOINT_PHASE_SAVED: CheckpointPhase
CHECKPOINT_PHASE_FAILED: CheckpointPhase
CHECKPOINT_PHASE_COMMITTED: CheckpointPhase
PROCESS_PHASE_UNSPECIFIED: ProcessPhase
PROCESS_PHASE_STARTED: ProcessPhase
PROCESS_PHASE_DIED: ProcessPhase
PROCESS_PHASE_GIVEN_UP: ProcessPhase

class Envelope(_message.Message):
    __slots__ = ("epoch", "compressed", "instance_hello", "instance_welcome", "plan", "task_report", "task_report_seen", "stop", "pressure", "checkpoint_report", "peer_hello", "peer_welcome", "loss", "peer_end", "stmgr_hello", "heartbeat", "executor_hello", "process_report", "container_tasks", "location_request", "tmanager_location", "metrics_publish", "status_request", "status_reply", "change_state", "done", "metrics_request", "metrics_reply", "begin_update", "withdraw_update", "take_checkpoint", "change_config", "stack_request", "profile_request", "task_answer", "memory_request", "tuples_request", "letters_request", "capture_request", "traces_request", "traces_reply", "long_call", "refused")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_HELLO_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_WELCOME_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TASK_REPORT_FIELD_NUMBER: _ClassVar[int]
    TASK_REPORT_SEEN_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_REPORT_FIELD_NUMBER: _ClassVar[int]
    PEER_HELLO_FIELD_NUMBER: _ClassVar[int]
    PEER_WELCOME_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    PEER_END_FIELD_NUMBER: _ClassVar[int]
    STMGR_HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_HELLO_FIELD_NUMBER: _ClassVar[int]
    PROCESS_REPORT_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TASKS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TMANAGER_LOCATION_FIELD_NUMBER: _ClassVar[int]
    METRICS_PUBLISH_FIELD_NUMBER: _ClassVar[int]
    STATUS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    STATUS_REPLY_FIELD_NUMBER: _ClassVar[int]
    CHANGE_STATE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    METRICS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    METRICS_REPLY_FIELD_NUMBER: _ClassVar[int]
    BEGIN_UPDATE_FIELD_NUMBER: _ClassVar[int]
    WITHDRAW_UPDATE_FIELD_NUMBER: _ClassVar[int]
    TAKE_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHANGE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    STACK_REQUEST_FIELD_NUMBER: _ClassVar[int]
    PROFILE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TASK_ANSWER_FIELD_NUMBER: _ClassVar[int]
    MEMORY_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TUPLES_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LETTERS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TRACES_REQUEST_FIELD_NUMBER: _ClassVar[int]
    TRACES_REPLY_FIELD_NUMBER: _ClassVar[int]
    LONG_CALL_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    compressed: bytes
    instance_hello: InstanceHello
    instance_welcome: InstanceWelcome
    plan: Plan
    task_report: TaskReport
    task_report_seen: TaskReportSeen
    stop: Stop
    pressure: Pressure
    checkpoint_report: CheckpointReport
    peer_hello: PeerHello
    peer_welcome: PeerWelcome
    loss: Loss
    peer_end: PeerEnd
    stmgr_hello: StmgrHello
    heartbeat: Heartbeat
    executor_hello: ExecutorHello
    process_report: ProcessReport
    container_tasks: ContainerTasks
    location_request: LocationRequest
    tmanager_location: TManagerLocation
    metrics_publish: MetricsPublish
    status_request: StatusRequest
    status_reply: StatusReply
    change_state: ChangeState
    done: Done
    metrics_request: MetricsRequest
    metrics_reply: MetricsReply
    begin_update: BeginUpdate
    withdraw_update: WithdrawUpdate
    take_checkpoint: TakeCheckpoint
    change_config: ChangeConfig
    stack_request: StackRequest
    profile_request: ProfileRequest
    task_answer: TaskAnswer
    memory_request: MemoryRequest
    tuples_request: TuplesRequest
    letters_request: LettersRequest
    capture_request: CaptureRequest
    traces_request: TracesRequest
    traces_reply: TracesReply
    long_call: LongCall
    refused: Refused
    def __init__(self, epoch: _Optional[int] = ..., compressed: _Optional[bytes] = ..., instance_hello: _Optional[_Union[InstanceHello, _Mapping]] = ..., instance_welcome: _Optional[_Union[InstanceWelcome, _Mapping]] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., task_report: _Optional[_Union[TaskReport, _Mapping]] = ..., task_report_seen: _Optional[_Union[TaskReportSeen, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., pressure: _Optional[_Union[Pressure, _Mapping]] = ..., checkpoint_report: _Optional[_Union[CheckpointReport, _Mapping]] = ..., peer_hello: _Optional[_Union[PeerHello, _Mapping]] = ..., peer_welcome: _Optional[_Union[PeerWelcome, _Mapping]] = ..., loss: _Optional[_Union[Loss, _Mapping]] = ..., peer_end: _Optional[_Union[PeerEnd, _Mapping]] = ..., stmgr_hello: _Optional[_Union[StmgrHello, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., executor_hello: _Optional[_Union[ExecutorHello, _Mapping]] = ..., process_report: _Optional[_Union[ProcessReport, _Mapping]] = ..., container_tasks: _Optional[_Union[ContainerTasks, _Mapping]] = ..., location_request: _Optional[_Union[LocationRequest, _Mapping]] = ..., tmanager_location: _Optional[_Union[TManagerLocation, _Mapping]] = ..., metrics_publish: _Optional[_Union[MetricsPublish, _Mapping]] = ..., status_request: _Optional[_Union[StatusRequest, _Mapping]] = ..., status_reply: _Optional[_Union[StatusReply, _Mapping]] = ..., change_state: _Optional[_Union[ChangeState, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., metrics_request: _Optional[_Union[MetricsRequest, _Mapping]] = ..., metrics_reply: _Optional[_Union[MetricsReply, _Mapping]] = ..., begin_update: _Optional[_Union[BeginUpdate, _Mapping]] = ..., withdraw_update: _Optional[_Union[WithdrawUpdate, _Mapping]] = ..., take_checkpoint: _Optional[_Union[TakeCheckpoint, _Mapping]] = ..., change_config: _Optional[_Union[ChangeConfig, _Mapping]] = ..., stack_request: _Optional[_Union[StackRequest, _Mapping]] = ..., profile_request: _Optional[_Union[ProfileRequest, _Mapping]] = ..., task_answer: _Optional[_Union[TaskAnswer, _Mapping]] = ..., memory_request: _Optional[_Union[MemoryRequest, _Mapping]] = ..., tuples_request: _Optional[_Union[TuplesRequest, _Mapping]] = ..., letters_request: _Optional[_Union[LettersRequest, _Mapping]] = ..., capture_request: _Optional[_Union[CaptureRequest, _Mapping]] = ..., traces_request: _Optional[_Union[TracesRequest, _Mapping]] = ..., traces_reply: _Optional[_Union[TracesReply, _Mapping]] = ..., long_call: _Optional[_Union[LongCall, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ...) -> None: ...

class InstanceHello(_message.Message):
    __slots__ = ("task_id", "incarnation", "endpoint", "pid", "wire_version")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    incarnation: int
    endpoint: str
    pid: int
    wire_version: int
    def __init__(self, task_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., endpoint: _Optional[str] = ..., pid: _Optional[int] = ..., wire_version: _Optional[int] = ...) -> None: ...

class InstanceWelcome(_message.Message):
    __slots__ = ("session", "window_bytes", "grant_bytes", "ended", "culprits")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    GRANT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CULPRITS_FIELD_NUMBER: _ClassVar[int]
    session: int
    window_bytes: int
    grant_bytes: int
    ended: bool
    culprits: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, session: _Optional[int] = ..., window_bytes: _Optional[int] = ..., grant_bytes: _Optional[int] = ..., ended: bool = ..., culprits: _Optional[_Iterable[int]] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("version", "document")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    version: int
    document: bytes
    def __init__(self, version: _Optional[int] = ..., document: _Optional[bytes] = ...) -> None: ...

class TaskReport(_message.Message):
    __slots__ = ("task_id", "incarnation", "phase", "error", "totals", "restores")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    RESTORES_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    incarnation: int
    phase: TaskPhase
    error: str
    totals: MetricsPublish
    restores: int
    def __init__(self, task_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., phase: _Optional[_Union[TaskPhase, str]] = ..., error: _Optional[str] = ..., totals: _Optional[_Union[MetricsPublish, _Mapping]] = ..., restores: _Optional[int] = ...) -> None: ...

class CheckpointReport(_message.Message):
    __slots__ = ("task_id", "incarnation", "restores", "number", "phase", "snapshot", "error")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    RESTORES_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    incarnation: int
    restores: int
    number: int
    phase: CheckpointPhase
    snapshot: bytes
    error: str
    def __init__(self, task_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., restores: _Optional[int] = ..., number: _Optional[int] = ..., phase: _Optional[_Union[CheckpointPhase, str]] = ..., snapshot: _Optional[bytes] = ..., error: _Optional[str] = ...) -> None: ...

class TaskReportSeen(_message.Message):
    __slots__ = ("task_id", "phase")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    phase: TaskPhase
    def __init__(self, task_id: _Optional[int] = ..., phase: _Optional[_Union[TaskPhase, str]] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Pressure(_message.Message):
    __slots__ = ("task_id", "container_id", "on", "buffered_bytes", "cause")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    BUFFERED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    container_id: int
    on: bool
    buffered_bytes: int
    cause: str
    def __init__(self, task_id: _Optional[int] = ..., container_id: _Optional[int] = ..., on: bool = ..., buffered_bytes: _Optional[int] = ..., cause: _Optional[str] = ...) -> None: ...

class PeerHello(_message.Message):
    __slots__ = ("container_id", "incarnation", "session", "wire_version", "frames_before")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    FRAMES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    incarnation: int
    session: int
    wire_version: int
    frames_before: int
    def __init__(self, container_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., session: _Optional[int] = ..., wire_version: _Optional[int] = ..., frames_before: _Optional[int] = ...) -> None: ...

class PeerWelcome(_message.Message):
    __slots__ = ("container_id", "incarnation", "session", "window_bytes")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    incarnation: int
    session: int
    window_bytes: int
    def __init__(self, container_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., session: _Optional[int] = ..., window_bytes: _Optional[int] = ...) -> None: ...

class Loss(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    def __init__(self, task_id: _Optional[int] = ...) -> None: ...

class PeerEnd(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: int
    def __init__(self, session: _Optional[int] = ...) -> None: ...

class StmgrHello(_message.Message):
    __slots__ = ("container_id", "incarnation", "endpoint", "host", "pid", "tasks", "losses", "lost_by_task", "server_key", "next_endpoint", "next_server_key")
    class LostByTaskEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    LOST_BY_TASK_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    NEXT_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NEXT_SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    incarnation: int
    endpoint: str
    host: str
    pid: int
    tasks: _containers.RepeatedCompositeFieldContainer[TaskReport]
    losses: int
    lost_by_task: _containers.ScalarMap[int, int]
    server_key: str
    next_endpoint: str
    next_server_key: str
    def __init__(self, container_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., endpoint: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[TaskReport, _Mapping]]] = ..., losses: _Optional[int] = ..., lost_by_task: _Optional[_Mapping[int, int]] = ..., server_key: _Optional[str] = ..., next_endpoint: _Optional[str] = ..., next_server_key: _Optional[str] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("container_id", "incarnation", "losses", "lost_by_task", "server_keys", "moved")
    class LostByTaskEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    LOST_BY_TASK_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEYS_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    incarnation: int
    losses: int
    lost_by_task: _containers.ScalarMap[int, int]
    server_keys: _containers.RepeatedScalarFieldContainer[str]
    moved: bool
    def __init__(self, container_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., losses: _Optional[int] = ..., lost_by_task: _Optional[_Mapping[int, int]] = ..., server_keys: _Optional[_Iterable[str]] = ..., moved: bool = ...) -> None: ...

class ExecutorHello(_message.Message):
    __slots__ = ("container_id", "attempt", "pid", "host")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    attempt: int
    pid: int
    host: str
    def __init__(self, container_id: _Optional[int] = ..., attempt: _Optional[int] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ...) -> None: ...

class ProcessReport(_message.Message):
    __slots__ = ("container_id", "process", "task_id", "incarnation", "phase", "reason", "restarts", "pid")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    container_id: int
    process: str
    task_id: int
    incarnation: int
    phase: ProcessPhase
    reason: str
    restarts: int
    pid: int
    def __init__(self, container_id: _Optional[int] = ..., process: _Optional[str] = ..., task_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., phase: _Optional[_Union[ProcessPhase, str]] = ..., reason: _Optional[str] = ..., restarts: _Optional[int] = ..., pid: _Optional[int] = ...) -> None: ...

class ContainerTasks(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...

class LocationRequest(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: str
    def __init__(self, process: _Optional[str] = ...) -> None: ...

class TManagerLocation(_message.Message):
    __slots__ = ("endpoint", "epoch", "server_key", "keys")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SERVER_KEY_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    epoch: int
    server_key: str
    keys: int
    def __init__(self, endpoint: _Optional[str] = ..., epoch: _Optional[int] = ..., server_key: _Optional[str] = ..., keys: _Optional[int] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Histogram(_message.Message):
    __slots__ = ("bounds", "counts", "total")
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    bounds: _containers.RepeatedScalarFieldContainer[float]
    counts: _containers.RepeatedScalarFieldContainer[int]
    total: float
    def __init__(self, bounds: _Optional[_Iterable[float]] = ..., counts: _Optional[_Iterable[int]] = ..., total: _Optional[float] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("name", "kind", "unit", "value", "histogram", "labels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    unit: str
    value: float
    histogram: Histogram
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., unit: _Optional[str] = ..., value: _Optional[float] = ..., histogram: _Optional[_Union[Histogram, _Mapping]] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("id", "name", "at_s", "subject", "cause", "attributes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    at_s: float
    subject: str
    cause: str
    attributes: _containers.RepeatedCompositeFieldContainer[Label]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., at_s: _Optional[float] = ..., subject: _Optional[str] = ..., cause: _Optional[str] = ..., attributes: _Optional[_Iterable[_Union[Label, _Mapping]]] = ...) -> None: ...

class MetricsPublish(_message.Message):
    __slots__ = ("topology", "container_id", "process", "incarnation", "component", "task_id", "at_s", "metrics", "events", "spans")
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    topology: str
    container_id: int
    process: str
    incarnation: int
    component: str
    task_id: int
    at_s: float
    metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    spans: _containers.RepeatedCompositeFieldContainer[TraceSpan]
    def __init__(self, topology: _Optional[str] = ..., container_id: _Optional[int] = ..., process: _Optional[str] = ..., incarnation: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., at_s: _Optional[float] = ..., metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ..., events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., spans: _Optional[_Iterable[_Union[TraceSpan, _Mapping]]] = ...) -> None: ...

class TraceStamp(_message.Message):
    __slots__ = ("kind", "clock", "monotonic_ns", "wall_ns")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    clock: int
    monotonic_ns: int
    wall_ns: int
    def __init__(self, kind: _Optional[str] = ..., clock: _Optional[int] = ..., monotonic_ns: _Optional[int] = ..., wall_ns: _Optional[int] = ...) -> None: ...

class TraceSpan(_message.Message):
    __slots__ = ("trace_id", "span_id", "parent_id", "kind", "stamps", "source", "source_task", "stream", "rows", "emitted", "followed", "outcome")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TASK_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    EMITTED_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    trace_id: int
    span_id: int
    parent_id: int
    kind: str
    stamps: _containers.RepeatedCompositeFieldContainer[TraceStamp]
    source: str
    source_task: int
    stream: str
    rows: int
    emitted: int
    followed: int
    outcome: str
    def __init__(self, trace_id: _Optional[int] = ..., span_id: _Optional[int] = ..., parent_id: _Optional[int] = ..., kind: _Optional[str] = ..., stamps: _Optional[_Iterable[_Union[TraceStamp, _Mapping]]] = ..., source: _Optional[str] = ..., source_task: _Optional[int] = ..., stream: _Optional[str] = ..., rows: _Optional[int] = ..., emitted: _Optional[int] = ..., followed: _Optional[int] = ..., outcome: _Optional[str] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    def __init__(self, request_id: _Optional[int] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("request_id", "document")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    document: bytes
    def __init__(self, request_id: _Optional[int] = ..., document: _Optional[bytes] = ...) -> None: ...

class ChangeState(_message.Message):
    __slots__ = ("request_id", "state")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    state: str
    def __init__(self, request_id: _Optional[int] = ..., state: _Optional[str] = ...) -> None: ...

class BeginUpdate(_message.Message):
    __slots__ = ("request_id", "base", "document", "owners", "code")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    base: str
    document: bytes
    owners: bytes
    code: bytes
    def __init__(self, request_id: _Optional[int] = ..., base: _Optional[str] = ..., document: _Optional[bytes] = ..., owners: _Optional[bytes] = ..., code: _Optional[bytes] = ...) -> None: ...

class ChangeConfig(_message.Message):
    __slots__ = ("request_id", "document")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    document: bytes
    def __init__(self, request_id: _Optional[int] = ..., document: _Optional[bytes] = ...) -> None: ...

class WithdrawUpdate(_message.Message):
    __slots__ = ("request_id", "reason")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    reason: str
    def __init__(self, request_id: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TakeCheckpoint(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    def __init__(self, request_id: _Optional[int] = ...) -> None: ...

class MetricsRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "by_task", "names")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    BY_TASK_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    by_task: bool
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., by_task: bool = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class MetricsReply(_message.Message):
    __slots__ = ("request_id", "document")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    document: bytes
    def __init__(self, request_id: _Optional[int] = ..., document: _Optional[bytes] = ...) -> None: ...

class TracesRequest(_message.Message):
    __slots__ = ("request_id", "limit")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    limit: int
    def __init__(self, request_id: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class TracesReply(_message.Message):
    __slots__ = ("request_id", "document")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    document: bytes
    def __init__(self, request_id: _Optional[int] = ..., document: _Optional[bytes] = ...) -> None: ...

class StackRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ...) -> None: ...

class LettersRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s", "drop", "ids")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    drop: bool
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ..., drop: bool = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ProfileRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s", "seconds")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    seconds: float
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ..., seconds: _Optional[float] = ...) -> None: ...

class MemoryRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s", "seconds")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    seconds: float
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ..., seconds: _Optional[float] = ...) -> None: ...

class TuplesRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s", "seconds", "tuples")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    seconds: float
    tuples: int
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ..., seconds: _Optional[float] = ..., tuples: _Optional[int] = ...) -> None: ...

class CaptureRequest(_message.Message):
    __slots__ = ("request_id", "component", "task_id", "wait_s", "seconds", "most_bytes", "shape", "keys", "salt")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    component: str
    task_id: int
    wait_s: float
    seconds: float
    most_bytes: int
    shape: bool
    keys: _containers.RepeatedCompositeFieldContainer[KeyField]
    salt: bytes
    def __init__(self, request_id: _Optional[int] = ..., component: _Optional[str] = ..., task_id: _Optional[int] = ..., wait_s: _Optional[float] = ..., seconds: _Optional[float] = ..., most_bytes: _Optional[int] = ..., shape: bool = ..., keys: _Optional[_Iterable[_Union[KeyField, _Mapping]]] = ..., salt: _Optional[bytes] = ...) -> None: ...

class KeyField(_message.Message):
    __slots__ = ("stream", "field")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    stream: str
    field: str
    def __init__(self, stream: _Optional[str] = ..., field: _Optional[str] = ...) -> None: ...

class TaskAnswer(_message.Message):
    __slots__ = ("request_id", "document", "refusal", "failure")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    document: bytes
    refusal: str
    failure: str
    def __init__(self, request_id: _Optional[int] = ..., document: _Optional[bytes] = ..., refusal: _Optional[str] = ..., failure: _Optional[str] = ...) -> None: ...

class LongCall(_message.Message):
    __slots__ = ("task_id", "incarnation", "on", "function", "place", "lasts_s")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    LASTS_S_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    incarnation: int
    on: bool
    function: str
    place: str
    lasts_s: float
    def __init__(self, task_id: _Optional[int] = ..., incarnation: _Optional[int] = ..., on: bool = ..., function: _Optional[str] = ..., place: _Optional[str] = ..., lasts_s: _Optional[float] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    def __init__(self, request_id: _Optional[int] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("request_id", "reason", "frames")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    reason: str
    frames: RefusedFrames
    def __init__(self, request_id: _Optional[int] = ..., reason: _Optional[str] = ..., frames: _Optional[_Union[RefusedFrames, _Mapping]] = ...) -> None: ...

class RefusedFrames(_message.Message):
    __slots__ = ("session", "taken")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    session: int
    taken: int
    def __init__(self, session: _Optional[int] = ..., taken: _Optional[int] = ...) -> None: ...

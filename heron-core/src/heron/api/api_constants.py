"""The names of the configuration keys, as in heronpy. `heron.api.config_key` lists types, ranges and defaults."""

from __future__ import annotations

import enum


class TopologyReliabilityMode(enum.StrEnum):
    """The delivery guarantee of a topology, the value of ``topology.reliability.mode``."""

    ATMOST_ONCE = "ATMOST_ONCE"
    ATLEAST_ONCE = "ATLEAST_ONCE"
    EFFECTIVELY_ONCE = "EFFECTIVELY_ONCE"


TOPOLOGY_NAME = "topology.name"
TOPOLOGY_DEBUG = "topology.debug"
TOPOLOGY_INSPECT_TUPLES = "topology.inspect.tuples"
TOPOLOGY_STMGRS = "topology.stmgrs"
TOPOLOGY_KEY_GROUPS = "topology.key.groups"
TOPOLOGY_MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS = "topology.enable.message.timeouts"
TOPOLOGY_COMPONENT_PARALLELISM = "topology.component.parallelism"
TOPOLOGY_MAX_SPOUT_PENDING = "topology.max.spout.pending"
TOPOLOGY_RELIABILITY_MODE = "topology.reliability.mode"
TOPOLOGY_ACKING = "topology.acking"
TOPOLOGY_TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
TOPOLOGY_SERIALIZER = "topology.serializer"
TOPOLOGY_STATE_BACKEND = "topology.state.backend"
TOPOLOGY_COLUMNS = "topology.columns"
TOPOLOGY_COLUMNS_COMPRESSION = "topology.columns.compression"
TOPOLOGY_SERIALIZER_CLASSNAME = "topology.serializer.classname"
TOPOLOGY_AUTO_TASK_HOOKS = "topology.auto.task.hooks"
TOPOLOGY_ON_ERROR = "topology.on.error"
TOPOLOGY_ON_FAILURE = "topology.on.failure"
TOPOLOGY_TMANAGER_STANDBYS = "topology.tmanager.standbys"
TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE = "topology.droptuples.upon.backpressure"
TOPOLOGY_OBJECTIVES = "topology.objectives"
TOPOLOGY_COMPONENT_OUTPUT_BPS = "topology.component.output.bps"
TOPOLOGY_SHED = "topology.shed"
TOPOLOGY_TRACE_ONE_IN = "topology.trace.one.in"
TOPOLOGY_REPLAY_ATTEMPTS = "topology.replay.attempts"
TOPOLOGY_REPLAY_BACKOFF_SECS = "topology.replay.backoff.secs"
TOPOLOGY_REPLAY_BYTES = "topology.replay.bytes"
TOPOLOGY_DEAD_LETTERS_BYTES = "topology.dead.letters.bytes"

TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS = "topology.stateful.checkpoint.interval.seconds"
TOPOLOGY_STATEFUL_START_FROM = "topology.stateful.start.from"
TOPOLOGY_STATEFUL_START_CLEAN = "topology.stateful.start.clean"
TOPOLOGY_STATEFUL_CHECKPOINTMANAGER_RAM = "topology.stateful.checkpointmanager.ram"
TOPOLOGY_STATEFUL_SPILL_STATE = "topology.stateful.spill.state"
TOPOLOGY_STATEFUL_SPILL_STATE_LOCATION = "topology.stateful.spill.state.location"

TOPOLOGY_CONTAINER_CPU_REQUESTED = "topology.container.cpu"
TOPOLOGY_CONTAINER_RAM_REQUESTED = "topology.container.ram"
TOPOLOGY_CONTAINER_DISK_REQUESTED = "topology.container.disk"
TOPOLOGY_CONTAINER_MAX_CPU_HINT = "topology.container.max.cpu.hint"
TOPOLOGY_CONTAINER_MAX_RAM_HINT = "topology.container.max.ram.hint"
TOPOLOGY_CONTAINER_MAX_DISK_HINT = "topology.container.max.disk.hint"
TOPOLOGY_CONTAINER_MAX_INSTANCES = "topology.container.max.instances"
TOPOLOGY_CONTAINER_PADDING_PERCENTAGE = "topology.container.padding.percentage"
TOPOLOGY_CONTAINER_RAM_PADDING = "topology.container.ram.padding"
TOPOLOGY_CONTAINER_CPU_PADDING = "topology.container.cpu.padding"
TOPOLOGY_COMPONENT_CPUMAP = "topology.component.cpumap"
TOPOLOGY_COMPONENT_RAMMAP = "topology.component.rammap"
TOPOLOGY_COMPONENT_DISKMAP = "topology.component.diskmap"
TOPOLOGY_PACKING_FFD_SORTING_STRATEGY = "topology.packing.ffd.sorting.strategy"
TOPOLOGY_STMGR_RAM = "topology.stmgr.ram"
TOPOLOGY_METRICSMGR_RAM = "topology.metricsmgr.ram"

TOPOLOGY_UPDATE_DEACTIVATE_WAIT_SECS = "topology.update.deactivate.wait.secs"
TOPOLOGY_UPDATE_REACTIVATE_WAIT_SECS = "topology.update.reactivate.wait.secs"
TOPOLOGY_ENVIRONMENT = "topology.environment"

TOPOLOGY_TEAM_NAME = "topology.team.name"
TOPOLOGY_TEAM_EMAIL = "topology.team.email"
TOPOLOGY_TEAM_ENVIRONMENT = "topology.team.environment"
TOPOLOGY_CAP_TICKET = "topology.cap.ticket"
TOPOLOGY_PROJECT_NAME = "topology.project.name"

# These configure a Java virtual machine and have no effect here. They are known so that a heronpy topology loads.
TOPOLOGY_WORKER_CHILDOPTS = "topology.worker.childopts"
TOPOLOGY_COMPONENT_JVMOPTS = "topology.component.jvmopts"
TOPOLOGY_ADDITIONAL_CLASSPATH = "topology.additional.classpath"

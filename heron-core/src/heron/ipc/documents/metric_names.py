"""The names of the engine's own metrics and events: Heron's names, if Heron has one, without the underscores."""

from __future__ import annotations

__all__ = [
    "ACK_COUNT",
    "BACKLOG",
    "BACKPRESSURE",
    "CHECKPOINTS_FAILED",
    "CHECKPOINT_AGE",
    "CHECKPOINT_ALIGN",
    "CHECKPOINT_BYTES",
    "CHECKPOINT_DURATION",
    "CHECKPOINT_NUMBER",
    "COMPLETE_LATENCY",
    "CONNECTIONS_REFUSED",
    "CONSUMED_BYTES",
    "CONTAINER_MEMORY",
    "CONTAINER_MEMORY_LIMIT",
    "CONTAINER_THROTTLED",
    "CPU_SECONDS",
    "CPU_WAIT",
    "DEAD_LETTERS_DROPPED",
    "DEAD_LETTER_COUNT",
    "DEBUGGED",
    "DEPOSED_MESSAGES",
    "DROPPED_TUPLES",
    "EMIT_BATCH_BYTES",
    "EMIT_BATCH_COUNT",
    "EMIT_COUNT",
    "EVENT_FIRST_TUPLE",
    "EXECUTE_BATCH_COUNT",
    "EXECUTE_COUNT",
    "EXECUTE_LATENCY",
    "FAILED_BY",
    "FAIL_COUNT",
    "GC_COLLECTION_COUNT",
    "GC_COLLECTION_TIME",
    "GC_PAUSE",
    "HELD_BACK",
    "HOST_CPU",
    "HOST_CPUS",
    "HOST_CPU_PRESSURE",
    "HOST_MEMORY_AVAILABLE",
    "HOST_RUN_QUEUE",
    "HOT_GROUP_SHARE",
    "HOT_KEY_SHARE",
    "IGNORED_ACK_COUNT",
    "IN_QUEUE_BYTES",
    "IN_QUEUE_CAPACITY",
    "KEPT_SHARE",
    "LATE_ACKS",
    "LATE_S",
    "LEADER_EPOCH",
    "OUTLET_BYTES",
    "OUTPUT_HELD",
    "OUT_QUEUE_BYTES",
    "OUT_QUEUE_CAPACITY",
    "PEER_SILENT",
    "PROTOCOL_VIOLATIONS",
    "REPLAY_BYTES",
    "REPLAY_COUNT",
    "RESIDENT_BYTES",
    "RESTORES",
    "ROOTS_IN_FLIGHT",
    "SELECTIVITY",
    "SETTLED_ROOTS",
    "SHED_COUNT",
    "SINK_DROPPED",
    "SINK_OUTAGE",
    "TAKEOVERS",
    "TASK_TIME",
    "TRACE_GAPS",
    "TRUE_RATE_IN",
    "TRUE_RATE_OUT",
    "UNCONFIRMED_BYTES",
    "USER_ERROR_COUNT",
    "WATERMARK",
]

EMIT_COUNT = "emit-count"  # counter, tuples; label stream; one per emit, whatever the number of destinations
EXECUTE_COUNT = "execute-count"  # counter, tuples; labels component, stream of the source
EMIT_BATCH_COUNT = "emit-batch-count"  # counter, segments of columns; label stream; only where columns are emitted
EMIT_BATCH_BYTES = "emit-batch-bytes"  # counter, bytes of their payloads; label stream
EXECUTE_BATCH_COUNT = "execute-batch-count"  # counter, calls of process_columns; labels component, stream of the source
ACK_COUNT = "ack-count"  # counter, tuples; bolt: calls of ack; spout: ack() calls that it received
FAIL_COUNT = "fail-count"  # counter, tuples; bolt: calls of fail and exceptions in process; spout: fail() calls
IGNORED_ACK_COUNT = "ignored-ack-count"  # counter, tuples; bolt: repeated acks, acks of ticks and of untracked tuples
COMPLETE_LATENCY = "complete-latency"  # histogram, s; spout: from the flush of a root to the end of its tree
FAILED_BY = "failed-by"  # counter, tuples; label reason: failed, expired, lost; spout
REPLAY_COUNT = "replay-count"  # counter, tuples; spout: failed roots that the engine has emitted again
REPLAY_BYTES = "replay-bytes"  # gauge, bytes; spout: what it keeps to emit it again, see topology.replay.bytes
DEAD_LETTER_COUNT = "dead-letter-count"  # counter, tuples; spout: records that have failed too often
DEAD_LETTERS_DROPPED = "dead-letters-dropped"  # counter, tuples; spout: dead letters that its files had no room for
USER_ERROR_COUNT = "user-error-count"  # counter, errors; label error: call, class and line; only where there are any
WATERMARK = "watermark"  # gauge, s since the epoch; bolt: its event-time watermark; only where one was received
EXECUTE_LATENCY = "execute-latency"  # histogram, s; mean time in user code, one entry per tuple
TASK_TIME = "task-time-s"  # counter, s; label use, see metrics/task_time.py; the uses sum up to the task's age
TRUE_RATE_IN = "true-rate-in"  # gauge, tuples/s; bolt: tuples executed per second of useful time, in the last period
TRUE_RATE_OUT = "true-rate-out"  # gauge, tuples/s; tuples emitted per second of useful time, in the last period
SELECTIVITY = "selectivity"  # gauge, 1; bolt: tuples emitted for each tuple executed, in the last period
CPU_WAIT = "cpu-wait-s"  # counter, s; time for which a task or a stream manager was ready and had no processor
DEBUGGED = "debugged-s"  # counter, s; label by: since a debugger is attached to a task; left out without one
HOT_KEY_SHARE = "hot-key-share"  # gauge, 1; label key: share of a bolt's top key; see heron.instance.input.key_sample
HOT_GROUP_SHARE = "hot-group-share"  # gauge, 1; label group: the key group that a bolt gets most
BACKLOG = "backlog"  # gauge, tuples; spout: what waits at its source, if its `backlog` says so
IN_QUEUE_CAPACITY = "in-queue-capacity-bytes"  # gauge, bytes; see heron.kernel.queue_capacity
OUT_QUEUE_CAPACITY = "out-queue-capacity-bytes"  # gauge, bytes
OUTPUT_HELD = "output-held-s"  # counter, s; time for which topology.component.output.bps has delayed data
IN_QUEUE_BYTES = "in-queue-bytes"  # gauge, bytes that wait for the task thread
CONSUMED_BYTES = "consumed-bytes"  # counter, bytes; bolt: the data of the tuples that it has executed
OUT_QUEUE_BYTES = "out-queue-bytes"  # gauge, bytes that wait for credit in the instance
OUTLET_BYTES = "outlet-bytes"  # gauge, bytes; label task; the outlet of a task in a stream manager
UNCONFIRMED_BYTES = "unconfirmed-bytes"  # gauge, bytes; label task; sent to it and not consumed; left out if 0
BACKPRESSURE = "backpressure-s"  # counter, s; label task; time for which a task has been a culprit
SHED_COUNT = "shed-count"  # counter, tuples; labels stream, reason (rate, latency); spout with topology.shed
KEPT_SHARE = "kept-share"  # gauge, 1; label stream; spout: the share of the tuples that topology.shed keeps now
DROPPED_TUPLES = "dropped-tuples"  # counter, tuples; labels task, reason (back-pressure); in a stream manager
ROOTS_IN_FLIGHT = "roots-in-flight"  # gauge, roots; of all spouts of a stream manager's container
SETTLED_ROOTS = "settled-roots"  # counter, roots; label outcome: complete, failed, expired, lost; in a stream manager
LATE_ACKS = "late-acks"  # counter, roots; label kind: ack, fail; of no root in flight; in a stream manager
LATE_S = "late-s"  # counter, s; how late a stream manager's own timer has fired, in total
TRACE_GAPS = "trace-gaps"  # counter, spans that are missing in traces; label reason: dropped, cut, malformed, refused
HELD_BACK = "held-back-s"  # counter, s; time for which back pressure has throttled a spout
DEPOSED_MESSAGES = "deposed-messages"  # counter, messages; refused messages of a deposed topology manager
LEADER_EPOCH = "leader-epoch"  # gauge; the epoch of the topology manager that leads; it grows with each leader
CHECKPOINTS_FAILED = "checkpoints-failed"  # counter, checkpoints; those that failed under this topology manager
CHECKPOINT_AGE = "checkpoint-age-s"  # gauge, s; time since the newest complete checkpoint
CHECKPOINT_ALIGN = "checkpoint-align-s"  # gauge, s; how long a task held data back for it, at most
CHECKPOINT_BYTES = "checkpoint-bytes"  # gauge, bytes; the size of its state
CHECKPOINT_DURATION = "checkpoint-duration-s"  # gauge, s; from its order until its manifest was stored
CHECKPOINT_NUMBER = "checkpoint-number"  # gauge; its number
RESTORES = "restores"  # counter, restores of the topology
TAKEOVERS = "takeovers"  # counter; how often the topology manager of this container has replaced another leader
PEER_SILENT = "peer-silent-s"  # gauge, s; label peer: a container that is not reached; in a stream manager
CPU_SECONDS = "cpu-seconds"  # counter, s; user and system time of the process
GC_COLLECTION_COUNT = "gc-collection-count"  # counter, collections; label generation: 0 youngest to 2; instances
GC_PAUSE = "gc-pause-s"  # counter, s; time in collections; instances
GC_COLLECTION_TIME = "gc-collection-time"  # histogram, s; the pause of the instance for each collection
CONNECTIONS_REFUSED = "connections-refused"  # counter; label reason: unknown-key, protocol, unfinished, foreign
PROTOCOL_VIOLATIONS = "protocol-violations"  # counter, frames; labels link, kind: version, kind, size, content, session
RESIDENT_BYTES = "resident-bytes"  # gauge, bytes
HOST_CPU = "host-cpu-s"  # counter, s of one processor; label mode: busy, iowait, steal, idle; in a metrics manager
HOST_CPUS = "host-cpus"  # gauge; the processors of the host
HOST_CPU_PRESSURE = "host-cpu-pressure-s"  # counter, s; time in which at least one thread waited for a processor
HOST_RUN_QUEUE = "host-run-queue"  # gauge, threads; those that run or are ready to
HOST_MEMORY_AVAILABLE = "host-memory-available-bytes"  # gauge, bytes
CONTAINER_MEMORY = "container-memory-bytes"  # gauge, bytes; used by the cgroup of the metrics manager, if it is limited
CONTAINER_MEMORY_LIMIT = "container-memory-limit-bytes"  # gauge, bytes; the limit of that cgroup
CONTAINER_THROTTLED = "container-throttled-s"  # counter, s; time for which the limit of the cgroup stopped it
SINK_DROPPED = "sink-dropped"  # counter, records; labels sink, reason; in a metrics manager
SINK_OUTAGE = "sink-outage-s"  # gauge, s; label sink; time for which it has delivered nothing, 0 while it works
EVENT_FIRST_TUPLE = "first-tuple"  # event: a bolt task has executed its first tuple

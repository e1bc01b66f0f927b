"""The settings of the engine: key, unit, default, range and meaning of each. Times are seconds, sizes are bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from heron.errors import ConfigError, known, nearest

__all__ = ["EngineSettings", "checked_setting"]

_KIB = 1024
_MIB = 1024 * 1024


def _int(key: str, default: int, unit: str, low: int, meaning: str) -> int:
    value: int = field(default=default, metadata={"key": key, "unit": unit, "low": low, "meaning": meaning})
    return value


def _float(key: str, default: float, unit: str, low: float, meaning: str) -> float:
    value: float = field(default=default, metadata={"key": key, "unit": unit, "low": low, "meaning": meaning})
    return value


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The engine's settings, the same for every process of a topology; a profile's section ``engine``."""

    batch_rows: int = _int(
        "heron.instance.batch.rows", 2500, "tuples", 1, "an instance flushes a batch with this number of tuples"
    )
    batch_bytes: int = _int("heron.instance.batch.bytes", 512 * _KIB, "bytes", 1024, "target size of a batch")
    linger_s: float = _float(
        "heron.instance.linger.s",
        0.01,
        "s",
        0.0,
        "longest time that an emitted tuple waits for further tuples; more behind a backlog",
    )
    tuple_max_bytes: int = _int(
        "heron.tuple.max.bytes",
        16 * _MIB,
        "bytes",
        1024,
        "largest tuple; a larger tuple fails, but its connection stays",
    )
    link_window_bytes: int = _int(
        "heron.link.window.bytes",
        1 * _MIB,
        "bytes",
        4096,
        "maximum of unconfirmed data on a link, and for each task between two peers",
    )
    high_watermark_bytes: int = _int(
        "heron.stmgr.high.watermark.bytes",
        8 * _MIB,
        "bytes",
        4096,
        "size of the data for one destination above which back pressure starts",
    )
    low_watermark_bytes: int = _int(
        "heron.stmgr.low.watermark.bytes",
        4 * _MIB,
        "bytes",
        0,
        "size of the data for one destination below which back pressure ends",
    )
    hard_limit_bytes: int = _int(
        "heron.stmgr.hard.limit.bytes",
        16 * _MIB,
        "bytes",
        4096,
        "size of the data for one destination above which bolts are throttled too",
    )
    outlet_target_s: float = _float(
        "heron.stmgr.queue.target.s",
        0.5,
        "s",
        0.001,
        "with checkpoints, back pressure starts above the data that leaves for one destination in this time",
    )
    backpressure_spouts: str = field(
        default="feeders",
        metadata={
            "key": "heron.stmgr.backpressure.spouts",
            "unit": "",
            "low": None,
            "meaning": "feeders or all: the spouts that a slow task throttles",
        },
    )
    out_queue_bytes: int = _int(
        "heron.instance.out.queue.bytes", 2 * _MIB, "bytes", 4096, "the task thread blocks while more output waits"
    )
    queue_target_s: float = _float(
        "heron.instance.queue.target.s",
        0.1,
        "s",
        0.001,
        "a queue of an instance holds the data that leaves it in this time",
    )
    queue_least_bytes: int = _int(
        "heron.instance.queue.least.bytes",
        64 * _KIB,
        "bytes",
        1024,
        "minimum capacity of a queue; it always has room for two batches",
    )
    long_call_s: float = _float(
        "heron.instance.long.call.s", 10.0, "s", 0.0, "a call of user code that lasts longer is reported; 0: no call is"
    )
    niceness: int = _int(
        "heron.instance.nice",
        0,
        "niceness",
        0,
        "lower priority of threads that run user code, at most 19: on a busy machine all else comes first",
    )
    network_host: str = field(
        default="127.0.0.1",
        metadata={
            "key": "heron.network.host",
            "unit": "",
            "low": None,
            "meaning": "address, name or interface on which a container listens",
        },
    )
    network_timeout_s: float = _float(
        "heron.network.timeout.s", 15.0, "s", 0.1, "a link between containers is reconnected after this silence"
    )
    heartbeat_s: float = _float("heron.heartbeat.s", 1.0, "s", 0.01, "period of heartbeats on control links")
    silence_s: float = _float(
        "heron.silence.s", 60.0, "s", 0.1, "a stream manager without heartbeats for this time is reported as silent"
    )
    update_prepare_s: float = _float(
        "heron.update.prepare.s", 120.0, "s", 0.1, "an update is withdrawn if its new tasks do not run after this time"
    )
    checkpoint_timeout_s: float = _float(
        "heron.checkpoint.timeout.s", 600.0, "s", 0.1, "a checkpoint that is not complete after this time is abandoned"
    )
    restore_timeout_s: float = _float(
        "heron.checkpoint.restore.timeout.s",
        120.0,
        "s",
        0.0,
        "a task that restores fails when an object of the checkpoint cannot be loaded for this time",
    )
    checkpoints_kept: int = _int(
        "heron.checkpoint.kept", 3, "checkpoints", 1, "the number of complete checkpoints that a run keeps"
    )
    park_limit_bytes: int = _int(
        "heron.checkpoint.park.bytes",
        256 * _MIB,
        "bytes",
        4096,
        "a task that parks more data while it aligns a checkpoint gives that checkpoint up",
    )
    metrics_export_s: float = _float("heron.metrics.export.s", 1.0, "s", 0.01, "period of metrics reports")
    restart_backoff_s: float = _float(
        "heron.executor.restart.backoff.s", 0.1, "s", 0.0, "first wait before a dead process is restarted"
    )
    restart_backoff_max_s: float = _float(
        "heron.executor.restart.backoff.max.s", 10.0, "s", 0.0, "longest wait before a dead process is restarted"
    )
    restart_limit: int = _int(
        "heron.executor.restart.limit",
        8,
        "restarts",
        0,
        "a process is not restarted after this number of failures in a row",
    )
    stable_s: float = _float(
        "heron.executor.stable.s", 30.0, "s", 0.0, "after a run of this length the count of failures is 0 again"
    )
    stop_grace_s: float = _float("heron.executor.stop.grace.s", 3.0, "s", 0.0, "longest clean stop; then SIGKILL")
    output_max_bytes: int = _int(
        "heron.executor.output.max.bytes",
        10 * _MIB,
        "bytes",
        4096,
        "largest output file of a process; two older files are kept",
    )
    standbys: int = _int(
        "topology.tmanager.standbys", 0, "processes", 0, "standby topology managers, one container each"
    )
    process_start: str = field(
        default="fork",
        metadata={
            "key": "heron.executor.process.start",
            "unit": "",
            "low": None,
            "meaning": "fork or exec: processes of containers are forked from one that has the imports, or are new",
        },
    )
    on_failure: str = field(
        default="restart",
        metadata={
            "key": "topology.on.failure",
            "unit": "",
            "low": None,
            "meaning": "restart or stop: what happens if a component cannot be constructed or initialised",
        },
    )

    @property
    def frame_max_bytes(self) -> int:
        """The largest frame; a larger frame ends its session. It has room for a tuple, its batch, and their headers."""
        return 2 * self.tuple_max_bytes + self.batch_bytes + _MIB

    @classmethod
    def from_keys(cls, values: Mapping[str, object]) -> EngineSettings:
        """Settings from ``{key: value}``; keys that are absent have their defaults.

        Raises:
            ConfigError: when a key is unknown, or a value is of the wrong type or below its range.
        """
        chosen = dict(checked_setting(key, value) for key, value in values.items())
        settings = cls(**chosen)  # type: ignore[arg-type]  # the types were checked against the defaults above
        if settings.low_watermark_bytes >= settings.high_watermark_bytes:
            msg = (
                f"engine.heron.stmgr.low.watermark.bytes: {settings.low_watermark_bytes} bytes is not below "
                f"heron.stmgr.high.watermark.bytes, {settings.high_watermark_bytes} bytes; lower it"
            )
            raise ConfigError(msg)
        if settings.hard_limit_bytes < settings.high_watermark_bytes:
            msg = (
                f"engine.heron.stmgr.hard.limit.bytes: {settings.hard_limit_bytes} bytes is below "
                f"heron.stmgr.high.watermark.bytes, {settings.high_watermark_bytes} bytes; raise it"
            )
            raise ConfigError(msg)
        _one_of("topology.on.failure", settings.on_failure, "restart", "stop")
        _one_of("heron.stmgr.backpressure.spouts", settings.backpressure_spouts, "feeders", "all")
        _one_of("heron.executor.process.start", settings.process_start, "fork", "exec")
        return settings

    def to_keys(self) -> dict[str, object]:
        """The inverse of `from_keys`: every key with its value."""
        return {str(each.metadata["key"]): getattr(self, each.name) for each in fields(self)}


def checked_setting(key: str, value: object) -> tuple[str, object]:
    """The name of the field of `EngineSettings` for a key, and the value in the type of the field.

    Raises:
        ConfigError: when the key is unknown, or the value is of the wrong type or below its range.
    """
    by_key = {str(each.metadata["key"]): each for each in fields(EngineSettings)}
    if key not in by_key:
        msg = f"engine.{key}: unknown key{nearest(key, by_key)}; known: {known(by_key)}"
        raise ConfigError(msg)
    each = by_key[key]
    return each.name, _checked(key, value, type(each.default), each.metadata["low"], each.metadata["unit"])


def _one_of(key: str, value: str, *choices: str) -> None:
    if value not in choices:
        msg = f"engine.{key}: {value!r} is neither {' nor '.join(map(repr, choices))}"
        raise ConfigError(msg)


def _checked(key: str, value: object, kind: type, low: object, unit: str) -> object:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        msg = f"engine.{key}: {value!r} is not of type {kind.__name__}; give one in {unit}"
        raise ConfigError(msg)
    if isinstance(value, float) and not math.isfinite(value):
        msg = f"engine.{key}: {value} {unit} is not a finite number; give one in {unit}"
        raise ConfigError(msg)
    if isinstance(low, int | float) and isinstance(value, int | float) and value < low:
        msg = f"engine.{key}: {value} {unit} is below the minimum, {low} {unit}"
        raise ConfigError(msg)
    return value

"""The sensors of the policies that are shipped, besides that of the sources, which has an option."""

from __future__ import annotations

from heron.spi.health import Sensor
from heron_health_manager.cause_sensors import CallSensor, CrossingSensor, HotKeySensor, MemorySensor, ProgressSensor
from heron_health_manager.flow_sensors import QueueSensor, RestartSensor
from heron_health_manager.host_sensor import HostSensor
from heron_health_manager.objectives.latency_sensor import LatencySensor
from heron_health_manager.task_sensors import BatchSensor, StreamSensor, TaskSensor

__all__ = ["SENSORS"]

SENSORS: tuple[Sensor, ...] = (
    TaskSensor(),
    StreamSensor(),
    BatchSensor(),
    QueueSensor(),
    RestartSensor(),
    HostSensor(),
    ProgressSensor(),
    MemorySensor(),
    CrossingSensor(),
    CallSensor(),
    HotKeySensor(),
    LatencySensor(),
)

"""The sensors of the policies that are shipped, besides that of the sources, which has an option."""

from __future__ import annotations

from heron.spi.health import Sensor
from heron_health_manager.sensors.cause_sensors import (
    CallSensor,
    CrossingSensor,
    DebuggerSensor,
    HotKeySensor,
    MemorySensor,
    ProgressSensor,
)
from heron_health_manager.sensors.flow_sensors import QueueSensor, RestartSensor
from heron_health_manager.sensors.host_sensor import HostSensor
from heron_health_manager.sensors.latency_sensor import LatencySensor
from heron_health_manager.sensors.routed_sensor import RoutedSensor
from heron_health_manager.sensors.task_sensors import BatchSensor, StreamSensor, TaskSensor

__all__ = ["SENSORS"]

SENSORS: tuple[Sensor, ...] = (
    TaskSensor(),
    StreamSensor(),
    BatchSensor(),
    QueueSensor(),
    RoutedSensor(),
    RestartSensor(),
    HostSensor(),
    ProgressSensor(),
    MemorySensor(),
    CrossingSensor(),
    CallSensor(),
    HotKeySensor(),
    DebuggerSensor(),
    LatencySensor(),
)

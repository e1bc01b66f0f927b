"""The contract of task inspectors, kept by the driver ``plain``."""

from __future__ import annotations

from heron_task_plain import PlainInspector
from heron_testing.contracts.task import TaskInspectorContract


class TestPlainInspector(TaskInspectorContract):
    name = "plain"
    driver_class = PlainInspector

"""The contract of task inspectors, kept by the driver ``inspector``."""

from __future__ import annotations

from heron_task_inspector.inspector import ProcessInspector
from heron_testing.contracts.task import TaskInspectorContract


class TestProcessInspector(TaskInspectorContract):
    """Runs the whole suite of the family."""

    name = "inspector"
    driver_class = ProcessInspector

"""The metrics manager: one process per container, which passes metrics and events to sinks and topology manager.

Reading order: `main`, `metrics_manager` (reads the records of all processes), `sink_runner` (a thread and a bounded
queue for each sink), `host_metrics` (processors and memory of the host and the container).
"""

"""The metrics manager: one process per container, which passes metrics and events to sinks and topology manager.

`sink_runner` gives each sink a thread and a bounded queue. `metrics_manager` reads the records of all processes.
"""

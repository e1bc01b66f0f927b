"""The metrics manager, one per container: takes every process's records, feeds the sinks and the topology manager.

`sink_runner` gives each sink a thread and a bounded queue, `forwarder` passes records on to the topology manager,
`metrics_manager` joins them.
"""

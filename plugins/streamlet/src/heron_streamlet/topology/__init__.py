"""Stages on Heron: a plan becomes a topology, and the spouts and bolts of the topology run the stages.

In: a graph, and later the tuples of tasks. Out: a `TopologyBuilder`, and later rows as tuples. `api.runner` calls the
compiler; Heron's engine and the simulator call spouts and bolts on the task thread.

Reading order: `topology_compiler` (one component for each stage), `partition_grouping`, `task_host` (rows become
tuples), `source_spout` (a stage with a source), `settling_spout` (the same, for readers that hear which elements are
safe), `stage_bolts` (all other stages).
"""

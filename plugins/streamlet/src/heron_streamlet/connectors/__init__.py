"""Sources and sinks: the base classes of connectors, and those for files and Python objects.

In: what a source reads outside of the pipeline. Out: what a sink writes there, with checkpoints in two phases. Authors
and connectors derive the classes; the tasks of an engine call them, each object from one thread.

Reading order: `transformer` (what an object learns about its task), `sources`, `sinks`, `staging` (files that wait for
their checkpoint), `staged_sink` (a sink that writes such files to another system).
"""

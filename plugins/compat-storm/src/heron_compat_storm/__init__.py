"""Runs topologies of Apache Storm from their jar.

Reading order: `storm_jar` (the plugin), `jar_program` (from a jar to a Python program), `jar_file`, `storm_libraries`
(where Storm's own jars are), `main_run` (what `main` submits), `main_end` (why it submits nothing), `storm_topology`
(the Thrift document), `storm_config`, `translation` (the topology of Heron).
"""

"""The Python API of Apache Heron, provided by Heron for Python.

Programs import the modules by their full paths. Each module re-exports names of `heron.api`; where heronpy differs, the
module adapts them. Those of `heronpy.streamlet` re-export names of `heron_streamlet`.
"""

"""Heron for Python: a stream-processing engine over ZeroMQ whose environment consists of plugins."""

"""Heron for Python: a stream-processing engine whose parts talk over ZeroMQ and whose environment is a plugin."""

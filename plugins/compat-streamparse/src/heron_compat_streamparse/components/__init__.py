"""The classes that authors derive from, with pystorm's methods. The instance gives each object its host.

Reading order: `component`, `bolt`, `batching_bolt`, `spout`, `surface` (which classes need a child process).
"""

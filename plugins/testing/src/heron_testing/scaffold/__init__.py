"""Writes a new plugin: it installs and loads, and its tests show what its author still has to write."""

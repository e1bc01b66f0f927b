"""Writes a new plugin that installs, loads, and fails the cases of its contract that are still to be kept."""

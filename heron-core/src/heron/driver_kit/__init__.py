"""Helpers for engine processes and drivers: files, processes, secrets, logs. `heron_driver_kit` has the others."""

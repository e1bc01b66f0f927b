"""Helpers for authors of drivers: files, processes, packages, secrets, logs."""

"""Runs a topology in the foreground: ``heron run``."""

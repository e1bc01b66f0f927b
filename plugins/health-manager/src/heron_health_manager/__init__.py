"""Finds out what ails a running topology, and what would help."""

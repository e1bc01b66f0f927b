"""Chaos tests: kill and stop processes of a topology under load, and check that no line was lost: ``./dev chaos``."""

"""Starts topologies, injects known causes, and notes which diagnosis the health manager gives: ``./dev truth``."""

"""Kills and stops processes of a topology under load, and proves that no line was lost: ``./dev chaos``."""

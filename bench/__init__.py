"""Benchmarks of the engine: ``./dev bench -- [NAME...]`` or ``python -m bench``."""

"""Benchmarks of the engine: ``./dev bench -- [NAME...]``."""

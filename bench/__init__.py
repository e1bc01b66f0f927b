"""Benchmarks of the engine on this machine: ``./dev bench -- [NAME...]``, or ``python -m bench``."""

"""Benchmarks of the engine on this machine: ``python -m bench [NAME...] [--quick]``, or ``./dev bench -- [NAME...]``."""

"""Pipelines in tests: what they mean, and runs that collect their results."""

"""Renders plans, status, metrics and progress for people."""

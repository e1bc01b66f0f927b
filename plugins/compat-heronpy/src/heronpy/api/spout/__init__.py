"""Spouts."""

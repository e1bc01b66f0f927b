"""Spouts, bolts and what topologies are made of."""

"""Topologies and their parts: spouts, bolts, streams and groupings."""

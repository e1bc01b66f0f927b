"""Finds topologies, asks them and changes them."""

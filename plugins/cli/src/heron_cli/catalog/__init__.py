"""Finds the installed drivers and observers, and checks whether they work."""

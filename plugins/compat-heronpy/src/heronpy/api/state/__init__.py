"""State of components."""

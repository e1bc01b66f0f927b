"""The state of components."""

"""Sources for trying out."""

"""What spouts and bolts have in common, and their specs."""

"""The root class of spouts and bolts, and their specs."""

"""History that outlives topologies and the tracker: rates and levels by time, in one SQLite file."""

"""History that outlives topologies and the tracker: rates and levels by time, in one SQLite file.

In: observations, from the threads of the watches. Out: points and events by time, for the paths of the history and for
queries. One thread writes the file, and readers wait for nobody.

Reading order: `series` (what is kept, by name), `samples` (an observation becomes increments), `buckets` (their sums by
time), `recorder` (the thread that writes), `history_file` (the file), `prometheus_history` (the same from Prometheus).
"""

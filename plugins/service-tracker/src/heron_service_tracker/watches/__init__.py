"""The threads that ask state managers and topologies, and the table in which they leave what they have read.

In: answers of state managers and topology managers, once per period. Out: the newest observation of each topology, its
events and the versions of its plans. `service` starts the watches: a thread for each cluster and for each topology.
Every other thread reads `observations`, which never waits for a topology.

Reading order: `observations` (the table), `list_looks` (for whom lists are read), `cluster_watch` and `topology_watch`
(the threads), `status_events` and `plan_changes` (what differs between two observations).
"""

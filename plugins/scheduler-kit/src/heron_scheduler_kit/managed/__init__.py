"""Schedulers for clusters that keep containers running themselves; decision 073.

A driver derives its scheduler from `ManagedScheduler`, and translates a `ManagedJob` for its cluster in a `Cluster`.
"""

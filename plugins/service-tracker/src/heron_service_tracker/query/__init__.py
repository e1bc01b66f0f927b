"""Heron Tracker's query language: expressions of timelines by minute, over the history.

In: the text of a query, and a topology. Out: timelines. `paths` calls it, in a thread, because it reads the history.

Reading order: `expression` (the syntax), `task_history` (the timelines that a query reads), `timelines` (operators).
"""

"""Heron Tracker's query language: expressions of timelines by minute, over the history."""

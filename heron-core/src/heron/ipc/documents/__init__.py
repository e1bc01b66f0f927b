"""Answers of a topology manager as frozen values, JSON on the wire: for commands, services and clients.

Reading order: `status`, `metrics_table` with `metric_names`, `traces_table`, `letter_line` (dead letters). The other
answers of a task are in `heron.spi`.
"""

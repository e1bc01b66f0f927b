"""The newest metrics and traces of all processes of a topology, in memory and bounded. Pure.

Reading order: `metrics_store` (rates and sums), `trace_store`, `checkpoint_metrics`.
"""

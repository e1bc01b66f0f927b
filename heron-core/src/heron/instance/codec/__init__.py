"""Rows to payload bytes and back. Pure.

Output and input call it once for each batch, on the task thread.

Reading order: `serializers` (those of a task), `batch_codec` (a batch as columns), `plain` (a serializer for any
language), `pickled_values` (each value of a batch alone).
"""

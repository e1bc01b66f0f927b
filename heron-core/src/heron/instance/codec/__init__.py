"""Rows to payload bytes and back. Pure.

Output and input call it once for each batch, on the task thread.

Reading order: `serializers` (those of a task), `batch_codec` (a batch as columns; a row that cannot be encoded is left
out), `pickled_rows` (objects that rows share), `plain` (a serializer for any language), `pickled_values` (each value of
a batch alone).
"""

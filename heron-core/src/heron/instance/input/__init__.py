"""From received segments to the tuples and batches of columns that a bolt is given, and the acks that it gives back.

In: segments of the data-in queue. Out: rows for `process`, watermarks, ends of inputs, acks. Belongs to the task
thread; `bolt_runner` calls it.

Reading order: `channel_alignment` (which segments are processed now) or `early_segments` (which wait for the next
plan, without checkpoints), `batch_reader` (a segment becomes a batch), `undecodable_rows` (rows that fail alone),
`tuple_pool` (the objects of its tuples), `column_input` and `received_batches` (columns), `bolt_acks` (what is
settled) with `ack_trust` (which acks are checked), `finish_roots` (what `finish` emits), `weighted_reader` (tuples of
a spout that sheds), `marker_counter` (ends of inputs), `watermarks` (the smallest of all sources that are neither idle
nor ended), `received_traces`, `key_sample` (the most frequent key).
"""

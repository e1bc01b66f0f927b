"""From emitted rows and columns to segments: routes, encoding, tracking.

In: the author's emits. Out: segments in the data-out queue. Belongs to the task thread, and to the gateway while
`emit_lock` lets it flush.

Reading order: `emit_contracts` (what the collector calls), `emitter` (the collector), `generated_emit` (the generated
emit) and `fast_emit` (its compiled twin), `plain_output` (batches that are encoded already), `out_stream` (one stream)
with `stream_origin`, `stream_routes` (which task gets which row), `tracked_stream` and `flush_arrays` (roots and keys),
`kept_stream` (roots that the engine may emit again), `column_output` and `column_routes` (columns), `stream_traces`
(which rows are traced, and how many), `stream_shedder` and `kept_rows` (which rows are shed, and the probability of the
others), `emit_lock`, `event_time`.
"""

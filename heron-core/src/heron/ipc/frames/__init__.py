"""The bytes that travel on data links. Pure. WIRE.md describes them for other languages.

Reading order: `frame` (frames and segments), `frame_limits`, `sent_frames` (what is not confirmed yet), `tracking` and
`tracking_arrays` (acks), `trace_field`, `metrics_codec`.
"""

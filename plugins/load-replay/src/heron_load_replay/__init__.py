"""The load of a topology: captured from its spouts into a Parquet file, and replayed into any topology.

Reading order: `load_description` and `load_file` (the format); for captures `capture_command`, `capturing`,
`load_rows`, `plain_rows`; for replays `replay_command`, `replaying`, `replayed_topology`, `replay_order`,
`replay_spout`, `arrival_times`, `latency_histogram`, `replay_result`; for sizes `size_command`, `sizing`.
"""

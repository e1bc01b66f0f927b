"""Pipelines of heron_streamlet on Spark: as a batch job over history, and as a Structured Streaming query."""

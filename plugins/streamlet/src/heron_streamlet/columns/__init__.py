"""Pipelines over columns: streams whose elements are Arrow record batches (``heron-streamlet[columns]``).

from heron_streamlet import Builder, Config, Runner, tumbling_window
from heron_streamlet.columns import ParquetFiles, row_count, sum_of

builder = Builder()
bids = builder.new_columns(ParquetFiles("bids/*.parquet")).event_time("time", lag=5)
bids.aggregate_by_key_and_window("auction", tumbling_window(10), bids=row_count(), total=sum_of("price")).log()
Runner().run("bids", Config(), builder)

It has no files: the streams are in `api.streamlet`, everything else is in `arrow`.
"""

from heron_streamlet.api.streamlet import ColumnStreamlet, WindowedColumns
from heron_streamlet.arrow.aggregates import ColumnAggregate, max_of, mean_of, min_of, row_count, sum_of
from heron_streamlet.arrow.column_sources import ParquetFiles

__all__ = [
    "ColumnAggregate",
    "ColumnStreamlet",
    "ParquetFiles",
    "WindowedColumns",
    "max_of",
    "mean_of",
    "min_of",
    "row_count",
    "sum_of",
]

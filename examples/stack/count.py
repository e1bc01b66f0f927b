"""The pipeline: counts the views of each page in a topic, and keeps them in a view.

heron run examples/stack/count.py -- --kafka HOST:PORT
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from page_views import LAG_S, TOPIC, VIEW, config, page_of, time_of

from heron_connector_kafka import KafkaSource
from heron_streamlet import Builder, Runner


def main(arguments: Sequence[str]) -> None:
    """Parse the command line, and submit the pipeline."""
    parser = argparse.ArgumentParser(prog="count.py", description="counts page views of a topic")
    parser.add_argument("--kafka", required=True, help="HOST:PORT of a broker")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    builder = Builder()
    records = builder.new_source(KafkaSource(options.kafka, TOPIC)).set_num_partitions(2).set_name("read")
    seen = records.event_time(lambda record: time_of(record.value), lag=LAG_S, idle_after=5)
    seen.key_by(lambda record: page_of(record.value), lambda record: record.offset).to_view(VIEW)
    Runner().run("stack-count", config(), builder)


if __name__ == "__main__":
    main(sys.argv[1:])

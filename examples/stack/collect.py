"""The collector: programs log to it as to Scribe, and it writes their lines to a topic, each once.

    heron run examples/stack/collect.py -- --kafka HOST:PORT --folder FOLDER --ports 1463,1464

A program has its OK when a checkpoint contains its lines. Then they are in a transaction of the topic.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from page_views import TOPIC, config, is_countable, page_of

from heron_connector_kafka import KafkaSink, Transactions
from heron_connector_scribe import ScribeSource, ServiceOptions
from heron_streamlet import Builder, Runner


def main(arguments: Sequence[str]) -> None:
    """Parse the command line, and submit the pipeline."""
    parser = argparse.ArgumentParser(prog="collect.py", description="collects lines into a topic")
    parser.add_argument("--kafka", required=True, help="HOST:PORT of a broker")
    parser.add_argument("--folder", type=Path, required=True, help="for addresses, and lines before their checkpoint")
    parser.add_argument("--ports", required=True, help="the port of each collector, with commas")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    ports = tuple(map(int, options.ports.split(",")))
    builder = Builder()
    service = ServiceOptions(ports=ports, announce=str(options.folder / "collectors"))
    entries = builder.new_source(ScribeSource(service)).set_num_partitions(len(ports)).set_name("collect")
    lines = entries.map(lambda entry: entry.message.rstrip()).filter(is_countable).on_error("dead_letter")
    lines.set_name("check").to_sink(
        KafkaSink(options.kafka, TOPIC, key=page_of, transactions=Transactions("stack", options.folder / "staging"))
    )
    Runner().run("stack-collect", config(), builder)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Counts by key in windows of ten seconds, from logs to logs. A record is ``TIME KEY``."""

from __future__ import annotations

import argparse

from heron_connector_dlog import DlogSink, DlogSource, LogNamespace
from heron_streamlet import Builder, Config, KeyedWindow, Runner, tumbling_window

parser = argparse.ArgumentParser()
for name in ("uri", "jars", "source", "target", "staging"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--out")  # of every run; not used

QUORUM = {"bkcEnsembleSize": 2, "bkcWriteQuorumSize": 2, "bkcAckQuorumSize": 2}


def text(result: tuple[KeyedWindow[str], int]) -> str:
    """The record of a result."""
    window, count = result
    return f"{window.window.start_time:g} {window.key} {count}"


if __name__ == "__main__":
    given = parser.parse_args()
    logs = LogNamespace(given.uri, given.jars, QUORUM)
    builder = Builder()
    records = builder.new_source(DlogSource(logs, f"{given.source}-*")).set_num_partitions(2).set_name("records")
    words = records.map(lambda record: record.data.decode().split())
    pairs = words.event_time(lambda word: float(word[0]), lag=2).key_by(lambda word: word[1])
    counts = pairs.count_by_key_and_window(tumbling_window(10)).set_num_partitions(2).set_name("counts")
    counts.to_sink(DlogSink(logs, given.target, value=text, folder=given.staging))
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    config.set_delivery_semantics(Config.EFFECTIVELY_ONCE).set_num_containers(2)
    Runner().run("dlog_counts", config, builder)

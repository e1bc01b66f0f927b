"""Counts words from one stream of NATS to another one."""

from __future__ import annotations

import argparse

from heron_streamlet import Builder, Config, Runner

from heron_connector_nats import NatsSink, NatsSource

parser = argparse.ArgumentParser()
for name in ("url", "source", "target", "folder"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--out")  # the sandbox gives it to each program

if __name__ == "__main__":
    given = parser.parse_args()
    builder = Builder()
    messages = builder.new_source(NatsSource([given.url], given.source)).set_name("messages")
    words = messages.map(lambda message: message.data.decode()).key_by(lambda word: word)
    counts = words.count_by_key().map(lambda pair: f"{pair[0]} {pair[1]}")
    counts.to_sink(NatsSink([given.url], given.target, id="counts", folder=given.folder))
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    Runner().run("counting", config.set_delivery_semantics(Config.EFFECTIVELY_ONCE), builder)

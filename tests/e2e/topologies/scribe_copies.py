"""The messages of a Scribe collector, each once in a folder."""

from __future__ import annotations

from pathlib import Path

from recording import arguments

from heron_connector_scribe import ScribeSource, ServiceOptions
from heron_streamlet import Builder, Config, Runner, TextFolder

if __name__ == "__main__":
    options = arguments(mode="EFFECTIVELY_ONCE", ports="0")
    builder = Builder()
    service = ServiceOptions(
        ports=tuple(map(int, options.ports.split(","))), announce=str(Path(options.out, "collectors"))
    )
    entries = builder.new_source(ScribeSource(service)).set_num_partitions(2).set_name("entries")
    lines = entries.map(lambda entry: f"{entry.category} {entry.partition} {entry.message.decode().rstrip()}")
    lines.repartition(2).set_name("written").to_sink(TextFolder(Path(options.out, "copies")))
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    config.set_delivery_semantics(getattr(Config, options.mode)).set_num_containers(2)
    Runner().run("scribe_copies", config, builder)

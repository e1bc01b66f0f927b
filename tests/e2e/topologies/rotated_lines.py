"""The lines of rotated logs, each once in a folder."""

from __future__ import annotations

from pathlib import Path

from recording import arguments

from heron_connector_files import FilesSource
from heron_streamlet import Builder, Config, Runner, TextFolder

if __name__ == "__main__":
    options = arguments(mode="EFFECTIVELY_ONCE", tasks=2)
    builder = Builder()
    source = FilesSource(Path(options.out, "logs"), linger_s=2.0, scan_s=0.05)
    lines = builder.new_source(source).set_num_partitions(options.tasks).set_name("lines")
    texts = lines.map(lambda line: f"{line.log} {line.text}").on_error("dead_letter").set_name("texts")
    texts.repartition(2).set_name("written").to_sink(TextFolder(Path(options.out, "copies")))
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    config.set_delivery_semantics(getattr(Config, options.mode)).set_num_containers(2)
    Runner().run("rotated_lines", config, builder)

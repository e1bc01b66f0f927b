"""What can be measured, by name. The names are those of Apache Storm's own performance topologies where it has them."""

from __future__ import annotations

from bench.back_pressure import BackPressure
from bench.bench_kind import Bench
from bench.job import Job
from bench.latency import Latency
from bench.memory import Memory
from bench.start_up import StartUp
from bench.throughput import Throughput

__all__ = ["BENCHES"]

_WORD_COUNT = Job("simplified_word_count")

BENCHES: tuple[Bench, ...] = (
    Throughput("ConstSpoutOnly", "constspoutonly", Job("const_spout_only"), null=False),
    Throughput("ConstSpoutNullBolt", "const", Job("const_spout_null_bolt")),
    Throughput("ConstSpoutIdBoltNullBolt", "constid", Job("const_spout_id_bolt_null_bolt")),
    Throughput("SimplifiedWordCount", "wordcount", _WORD_COUNT),
    Throughput("FileReadWordCount", "fileread", Job("file_read_word_count")),
    Throughput("FileReadWordCount3", "fileread3", Job("file_read_word_count", ("--containers", "3"))),
    Throughput("AllGrouping", "all", Job("all_grouping")),
    Throughput("FourFields", "fourfields", Job("four_fields"), base=("onefield", _WORD_COUNT)),
    Latency("LowThroughput", 1_000),
    Latency("Latency10k", 10_000),
    Latency("Latency100k", 100_000),
    BackPressure("BackPressure"),
    StartUp("StartUp"),
    Memory("Memory"),
)

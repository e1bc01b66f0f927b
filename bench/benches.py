"""The benches by name. Where Apache Storm's performance topologies have an equivalent, the names are the same."""

from __future__ import annotations

from bench.auto_scale import AutoScale
from bench.back_pressure import BackPressure
from bench.bench_kind import Bench
from bench.capture_cost import CaptureCost
from bench.checkpoints import CheckpointLatency, Checkpoints, RestoreState
from bench.child_pipe import ChildPipe
from bench.encryption import Encryption
from bench.health_cost import HealthCost
from bench.in_out import InOut
from bench.job import ATLEAST, ATMOST, Job
from bench.jvm_words import JvmWords
from bench.latency import Latency
from bench.live_update import LiveUpdate
from bench.log_servers import Dlog, Kafka
from bench.many_containers import ManyContainers
from bench.memory import Memory
from bench.nexmark import Nexmark
from bench.nexmark_peers import NexmarkPeers
from bench.pipelines import Pipeline
from bench.poison import PoisonRecords
from bench.recovery import Recovery
from bench.scaling import over_containers, over_tasks
from bench.scribe_in import ScribeIn
from bench.spark_latency import SparkLatency
from bench.spark_pipelines import SparkPipeline
from bench.spark_start import SparkStart
from bench.spark_word_count import SparkWordCount
from bench.start_up import StartUp
from bench.throughput import Throughput
from bench.trace_cost import TraceCost
from bench.tracker_load import TrackerLoad
from bench.ui_cost import UiCost
from bench.yahoo import Yahoo

__all__ = ["BENCHES", "FILE_READ", "FOUR_FIELDS", "SPARK", "WORD_COUNT"]

_WORDS = Job("simplified_word_count")

WORD_COUNT = Throughput("SimplifiedWordCount", "wordcount", _WORDS)
FILE_READ = Throughput("FileReadWordCount", "fileread", Job("file_read_word_count"))
FOUR_FIELDS = Throughput("FourFields", "fourfields", Job("four_fields"), base=("onefield", _WORDS))

BENCHES: tuple[Bench, ...] = (
    Throughput("ConstSpoutOnly", "constspoutonly", Job("const_spout_only"), modes=(ATMOST,), null=False),
    Throughput("ConstSpoutNullBolt", "const", Job("const_spout_null_bolt")),
    Throughput("ConstSpoutIdBoltNullBolt", "constid", Job("const_spout_id_bolt_null_bolt")),
    WORD_COUNT,
    Throughput("ColumnWordCount", "columns", Job("column_word_count"), null=False, base=("tuples", _WORDS)),
    Throughput("ColumnTextCount", "columntext", Job("column_word_count", ("--text", "1")), null=False),
    Throughput("ToldWordCount", "told", Job("simplified_word_count", ("--acks", "1")), modes=(ATLEAST,)),
    FILE_READ,
    Throughput("FileReadWordCount3", "fileread3", Job("file_read_word_count", ("--containers", "3"))),
    Encryption("CrossContainerWordCount", "crosscontainer", Job("simplified_word_count", ("--containers", "2"))),
    Throughput("AllGrouping", "all", Job("all_grouping")),
    FOUR_FIELDS,
    Throughput("ManySmallTasks", "manytasks", Job("simplified_word_count", ("--bolts", "20"))),
    Pipeline("PipelineChain", "pipeline.chain.vs_hand", "chain"),
    Pipeline("PipelineWindows", "pipeline.windows.vs_hand", "windows"),
    Pipeline("PipelineColumns", "pipeline.columns.vs_records", "windows", ("pipeline", "columns"), 2_000_000),
    over_tasks(),
    over_containers(),
    Latency("LowThroughput", 1_000),
    Latency("Latency10k", 10_000),
    Latency("Latency100k", 100_000),
    BackPressure("BackPressure"),
    PoisonRecords("PoisonRecords"),
    ChildPipe("ChildPipe"),
    JvmWords("JvmWords", Job("simplified_word_count")),
    ScribeIn("ScribeIn"),
    InOut("KafkaIn", Kafka, "in"),
    InOut("KafkaOut", Kafka, "out"),
    InOut("LogIn", Dlog, "in"),
    InOut("LogOut", Dlog, "out"),
    StartUp("StartUp"),
    Memory("Memory"),
    ManyContainers("ManyContainers"),
    TrackerLoad("TrackerLoad", topologies=20, tasks=100),
    TrackerLoad("TrackerLoad1000", topologies=20, tasks=50, largest=1_000, clients=100),
    UiCost("UiCost", _WORDS),
    TraceCost("TraceCost", _WORDS),
    CaptureCost("CaptureCost", _WORDS),
    HealthCost("HealthCost", sizes=(200, 10_000)),
    Recovery("Recovery"),
    LiveUpdate("LiveUpdate", keys=1_000, value_bytes=10),
    LiveUpdate("LiveUpdateState", keys=10_000, value_bytes=10_000, interval_s=10.0),
    AutoScale("AutoScale"),
    Checkpoints("Checkpoints10s", "checkpoints10s", 10.0, keys=1_000, value_bytes=10_000),
    Checkpoints("Checkpoints1s", "checkpoints1s", 1.0, keys=1_000, value_bytes=100),
    CheckpointLatency("CheckpointLatency"),
    RestoreState("RestoreState"),
)

SPARK: tuple[Bench, ...] = (
    SparkWordCount("SparkWordCount", Job("simplified_word_count", ("--containers", "2"))),
    SparkLatency("SparkLatency10k", 10_000),
    SparkStart("SparkStart"),
    SparkPipeline("SparkPipelineBatch", "spark.pipeline.batch.vs_hand", "batch", 20_000_000),
    SparkPipeline("SparkPipelineStream", "spark.pipeline.stream.vs_hand", "stream", 3_200_000),
    Nexmark("Nexmark", ("q0", "q1", "q2", "q5", "q7")),
    Nexmark("NexmarkState", ("q3", "q4", "q6", "q8", "q11", "q12")),
    NexmarkPeers("NexmarkPeers", ("q0", "q1", "q2", "q5", "q7", "q8")),
    Yahoo("Yahoo", "yahoo"),
)
"""These need Spark and Java; they run only when they are named."""

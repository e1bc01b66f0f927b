"""Measure Kafka in and out: pipelines at least once, against a loop written by hand with the same client."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from confluent_kafka import Producer

from bench.bench_kind import Bench, alternate
from bench.findings import Findings, Pace, median_of_ratios, median_row
from bench.job import ATLEAST
from bench.kafka_programs import KEYS, value_of
from bench.pipelines import note_of
from bench.records import BenchError
from bench.trial import Trial
from heron_testing_servers.install import ServerNotInstalledError
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

__all__ = ["KafkaBench"]

_SUBJECTS = ("loop by hand", "pipeline", "pipeline in columns")
_RECORDS_PER_S = 200_000  # a first guess of the rate, so that a run takes about the time of the pace


@dataclass(frozen=True)
class KafkaBench(Bench):
    """Runs alternate. Each one reads the same topic to its end, or writes as many records to a topic of its own.

    The time is that from the first record until every record is counted, or is in the cluster.
    """

    name: str
    way: Literal["in", "out"]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`.

        Raises:
            BenchError: when a run loses records, or counts them twice.
        """
        records = round(pace.window_s * _RECORDS_PER_S)
        with tempfile.TemporaryDirectory() as folder:
            server = _server(Path(folder))
            server.start()
            try:
                filled = _filled(server.address, records) if self.way == "in" else ""
                found = alternate(_SUBJECTS, pace.pairs, partial(self._measure, pace, server.address, filled, records))
            finally:
                server.kill()
        findings = Findings()
        for subject, rates in found.items():
            findings.rows.append(median_row(self.name, subject, "records/s", rates, ATLEAST))
        loop, *pipelines = _SUBJECTS
        for subject, form in zip(pipelines, ("atleast", "atleast.columns"), strict=True):
            findings.ratios[f"kafka.{self.way}.{form}.vs_loop"] = median_of_ratios(found[subject], found[loop])
        return findings

    def _measure(self, pace: Pace, servers: str, filled: str, records: int, subject: str) -> float:
        topic = filled or Topics(servers).make()
        if subject == _SUBJECTS[0]:
            return self._loop(servers, topic, records)
        form = "columns" if subject.endswith("columns") else "records"
        return self._pipeline(pace, form, servers, topic, records)

    def _loop(self, servers: str, topic: str, records: int) -> float:
        program = "consume" if self.way == "in" else "produce"
        command = [sys.executable, "-m", "bench.kafka_programs", program, servers, topic, str(records)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            msg = f"{self.name}: the loop by hand failed: {run.stderr[-2000:]}"
            raise BenchError(msg)
        return float(run.stdout)

    def _pipeline(self, pace: Pace, form: str, servers: str, topic: str, records: int) -> float:
        written = ("--records", str(records)) if self.way == "out" else ()
        words = ("--servers", servers, "--topic", topic, "--form", form, *written)
        with Trial("kafka_records", *words, engine=pace.engine) as trial:
            trial.end()
            begin_s, _ = note_of(trial, "begin")
            end_s, count = note_of(trial, "end")
        if count != records:
            msg = f"{self.name}: {count} of {records} records were counted"
            raise BenchError(msg)
        return records / (end_s - begin_s)


def _server(folder: Path) -> KafkaServer:
    os.environ.setdefault("HERON_TESTS_CACHE", str(Path.home() / ".cache" / "heron-tests"))
    try:
        return KafkaServer(folder / "kafka")
    except ServerNotInstalledError as error:
        raise BenchError(str(error)) from error


def _filled(servers: str, records: int) -> str:
    """A topic with records of 100 keys."""
    topic = Topics(servers).make()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value_of(number), KEYS[number % len(KEYS)])
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if producer.flush(60.0):
        msg = "Kafka did not take the records in time"
        raise BenchError(msg)
    return topic

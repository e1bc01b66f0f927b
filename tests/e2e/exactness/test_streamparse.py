"""Projects of streamparse, with real processes; with the real package, which writes the project, where it installs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_cli.launch.loading.loaded import LoadingTopology
from heron_testing_servers.absence import not_here
from heron_testing_servers.install import ServerNotInstalledError, installed, python_packages

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

VERSION = "5.0.1"
LINES = 1200
WORDS = ("the", "heron", "and", "the", "ibis")

SPOUT = """
from streamparse import ReliableSpout

class LineSpout(ReliableSpout):
    outputs = ["number", "line"]

    def initialize(self, conf, context):
        self.number, self.lines, self.fails = 0, conf["lines"], []
        self.out = f"{conf['out']}/spout-{context['taskid']}.json"

    def next_tuple(self):
        if self.number < self.lines:
            self.emit([self.number, "the heron and the ibis"], tup_id=self.number)
            self.number += 1

    def fail(self, tup_id):
        self.fails.append(tup_id)
        super().fail(tup_id)
        self.write()

    def ack(self, tup_id):
        super().ack(tup_id)
        if not self.unacked_tuples:
            self.write()

    def write(self):
        import json, os
        with open(f"{self.out}.new", "w") as file:
            json.dump({"open": len(self.unacked_tuples), "emitted": self.number, "fails": self.fails}, file)
        os.rename(f"{self.out}.new", self.out)
"""

BOLTS = """
import json
import os
from collections import Counter
from streamparse import BatchingBolt, Bolt

class Written:
    def initialize(self, conf, context):
        self.counts, self.failed = Counter(), []
        self.out = f"{conf['out']}/{context['componentid']}-{context['taskid']}.json"

    def write(self):
        with open(f"{self.out}.new", "w") as file:
            json.dump({"counts": self.counts, "failed": self.failed}, file)
        os.rename(f"{self.out}.new", self.out)

class SplitBolt(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup.values.line.split():
            self.emit([word])

class CountBolt(Written, Bolt):
    def process(self, tup):
        self.counts[tup.values.word] += 1

    def process_tick(self, tup):
        self.write()

class BatchBolt(Written, BatchingBolt):
    ticks_between_batches = 0

    def group_key(self, tup):
        return tup.values.number % 7

    def process_batch(self, key, tups):
        if key == 3 and not self.failed:
            self.failed = [tup.values.number for tup in tups]
            raise RuntimeError("the first batch of key 3")
        self.counts.update(str(tup.values.number) for tup in tups)
        self.write()
"""

TOPOLOGY = """
from bolts.counting import BatchBolt, CountBolt, SplitBolt
from spouts.lines import LineSpout
from streamparse import Grouping, Topology

class Counting(Topology):
    config = {"topology.tick.tuple.freq.secs": 0.2}
    lines = LineSpout.spec()
    split = SplitBolt.spec(inputs=[lines], par=2)
    count = CountBolt.spec(inputs={split: Grouping.fields("word")}, par=2)
"""

BATCHES = (
    TOPOLOGY
    + """    batch = BatchBolt.spec(inputs=[lines])
"""
)

CONFIG = {"topology_specs": "topologies/", "envs": {"one": {}, "two": {"options": {"topology.workers": 2}}}}


def write_project(folder: Path, topology: str) -> Path:
    """Write a project with one topology; return its file."""
    for name, text in (
        ("config.json", json.dumps(CONFIG)),
        ("src/spouts/__init__.py", ""),
        ("src/spouts/lines.py", SPOUT),
        ("src/bolts/__init__.py", ""),
        ("src/bolts/counting.py", BOLTS),
        ("topologies/counting.py", topology),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "topologies" / "counting.py"


def counts(run: HeronRun, component: str) -> Counter[str]:
    """Return what all tasks of a component have counted."""
    found = Counter[str]()
    for path in run.out.glob(f"{component}-*.json"):
        found.update(json.loads(path.read_bytes())["counts"])
    return found


def the_document(run: HeronRun, component: str) -> dict[str, object]:
    """Return what the only task of a component has written; an empty dict before."""
    found = [*run.out.glob(f"{component}-*.json")]
    return dict(json.loads(found[0].read_bytes())) if found else {}


def start(sandbox: Sandbox, program: Path, *arguments: str) -> HeronRun:
    """Start a project in the environment of two containers."""
    out = ("-o", f"out={sandbox.root / 'out0'}", "-o", f"lines={LINES}")
    return sandbox.start(program, args=("-e", "two", *out, *arguments))


def end(run: HeronRun) -> None:
    """Stop a topology that never ends by itself."""
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output


@pytest.mark.matrix
@pytest.mark.parametrize("ackers", ["0", "1"])
def test_a_project_counts_exactly(sandbox: Sandbox, ackers: str) -> None:
    """At most once and at least once, in two containers, with components from ``src``."""
    run = start(sandbox, write_project(sandbox.root / "project", TOPOLOGY), "--ackers", ackers)
    expected = Counter({word: LINES * WORDS.count(word) for word in set(WORDS)})
    run.until(lambda: counts(run, "count") == expected, "every word")
    run.until(lambda: the_document(run, "spout").get("open") == 0, "every ack")
    assert the_document(run, "spout")["fails"] == []
    end(run)
    assert counts(run, "count") == expected


@pytest.mark.matrix
def test_a_batch_that_fails_is_replayed_alone(sandbox: Sandbox) -> None:
    """Its tuples come twice, and no other tuple does."""
    run = start(sandbox, write_project(sandbox.root / "project", BATCHES))
    run.until(lambda: len(counts(run, "batch")) == LINES, "every line")
    run.until(lambda: the_document(run, "spout").get("open") == 0, "every ack")
    batch = the_document(run, "batch")
    failed = batch["failed"]
    assert isinstance(failed, list)
    assert failed
    assert all(number % 7 == 3 for number in failed)
    assert sorted(the_document(run, "spout")["fails"]) == sorted(failed)  # type: ignore[call-overload]  # a list of numbers
    assert batch["counts"] == {str(number): 1 for number in range(LINES)}
    again = Counter({word: (LINES + len(failed)) * WORDS.count(word) for word in set(WORDS)})
    run.until(lambda: counts(run, "count") == again, "the words of the replayed lines")
    raised = "RuntimeError: the first batch of key 3"
    run.until(lambda: raised in run.stderr, "the error")  # which the command learns with the next status
    end(run)
    assert "counting.py, line " in run.stderr


@pytest.fixture
def real() -> Path:
    """A virtual environment with the real streamparse."""
    try:
        return installed(f"sparse-{VERSION}", python_packages(f"streamparse=={VERSION}", "setuptools<81"))
    except ServerNotInstalledError as error:
        not_here(f"streamparse {VERSION} cannot be installed: {error}")


OWN_PROTOCOL = """
from streamparse import Bolt

class OwnSplitBolt(Bolt):
    outputs = ["word"]

    def run(self):
        self.initialize(*self.read_handshake())
        while True:
            tup = self.read_tuple()
            if self.is_heartbeat(tup):
                self.send_message({"command": "sync"})
                continue
            if not self.is_tick(tup):
                for word in tup.values[1].split():
                    self.emit([word], anchors=[tup])
            self.ack(tup)
"""


@pytest.mark.servers
def test_a_component_with_its_own_protocol_runs_in_a_child(sandbox: Sandbox, real: Path) -> None:
    """The child runs the real package, and the other components run in their instances."""
    if find_spec("heron_runtime_multilang") is None:
        not_here("heron-runtime-multilang is not installed")
    own = TOPOLOGY.replace(", SplitBolt\n", "\nfrom bolts.own import OwnSplitBolt\n").replace("= Split", "= OwnSplit")
    program = write_project(sandbox.root / "project", own)
    (sandbox.root / "project" / "src" / "bolts" / "own.py").write_text(OWN_PROTOCOL, encoding="utf-8")
    programs = sandbox.root / "programs"
    programs.mkdir()
    runner = programs / "streamparse_run"
    runner.write_text(f'#!/bin/sh\nexec {real}/bin/python -m streamparse.run "$@"\n', encoding="utf-8")
    runner.chmod(0o755)
    arguments = ("-o", f"out={sandbox.root / 'out0'}", "-o", f"lines={LINES}", "-e", "one")
    run = sandbox.start(program, args=arguments, wrapper=("env", f"PATH={programs}:/usr/bin:/bin"))
    expected = Counter({word: LINES * WORDS.count(word) for word in set(WORDS)})
    run.until(lambda: counts(run, "count") == expected, "every word")
    run.until(lambda: the_document(run, "spout").get("open") == 0, "every ack")
    end(run)


DESCRIBE = """
import json, sys
sys.path += ["src", "topologies"]
from wordcount import WordCount
print(json.dumps({spec.name: {
    "par": spec.par,
    "outputs": {name: info.output_fields for name, info in spec.outputs.items()},
    "inputs": sorted([key.componentId, key.streamId, grouping.fields] for key, grouping in spec.inputs.items()),
} for spec in WordCount.specs}))
"""


@pytest.mark.servers
def test_the_quickstart_of_the_real_package_runs_beside_it(sandbox: Sandbox, real: Path) -> None:
    """The project is as `sparse` writes it, and the real package is on the path of all processes."""
    python = str(real / "bin" / "python")
    sparse = [python, "-m", "streamparse.cli.sparse", "quickstart", "wordcount"]
    environment = {"LEIN_ROOT": "1", "PATH": "/usr/bin:/bin"}
    subprocess.run(sparse, cwd=sandbox.root, env=environment, check=True, capture_output=True)
    project = sandbox.root / "wordcount"
    described = subprocess.run([python, "-c", DESCRIBE], cwd=project, check=True, capture_output=True, text=True)
    program = project / "topologies" / "wordcount.py"
    with LoadingTopology(str(program), ()) as loading:
        definition = loading.result().definition
    assert json.loads(described.stdout.splitlines()[-1]) == {
        each.name: {
            "par": each.parallelism,
            "outputs": {output.name: list(output.fields) for output in each.outputs},
            "inputs": sorted([one.component, one.stream, list(one.grouping.fields)] for one in each.inputs),
        }
        for each in definition.components
    }
    (packages,) = real.glob("lib/*/site-packages")
    run = sandbox.start(program, wrapper=("env", f"PYTHONPATH={packages}"))
    run.until(lambda: "counted [" in sandbox.log_text("count_bolt-*.log"), "a thousand words")
    end(run)
    assert "heron_compat_streamparse" in sandbox.output_of("plugins", "show", "compat", "streamparse")

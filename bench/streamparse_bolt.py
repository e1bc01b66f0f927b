"""One streamparse bolt inside its instance, and the same bolt behind a pipe: tuples of each by CPU second, in pairs.

    python -m bench.streamparse_bolt PYTHON [PAIRS]

PYTHON is an interpreter that has pystorm. The bolt counts a word, emits and acks. Behind the pipe it is unmodified
pystorm. Its host has encoded all messages before and does not decode the answers, and only the CPU of the child counts.
Inside, spout and bolt are joined by direct calls (`heron_simulator.null_engine`), so the CPU of the spout counts too.
The bolt keeps what at least once needs. CPU seconds, because other programs on the machine do not change them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

import msgspec
import psutil

from heron.kernel.author_topology import choose_topology
from heron.kernel.user_code import load_user_code, serve_package
from heron_simulator.null_engine import run_null_engine

TUPLES_PIPE = 100_000
TUPLES_INSIDE = 400_000
WORDS = ("dog", "cat", "zebra", "elephant")
SETUP = {
    "conf": {"topology.name": "count", "pystorm.log.level": "error"},
    "context": {
        "taskid": 2,
        "componentid": "count",
        "task->component": {"1": "words", "2": "count"},
        "source->stream->fields": {"words": {"default": ["word"]}},
    },
}

BOLT = """
from collections import Counter
from {package} import Bolt

class Count(Bolt):
    outputs = ["word", "count"]
    def initialize(self, conf, context):
        self.counts = Counter()
    def process(self, tup):
        word = tup.values.word
        self.counts[word] += 1
        self.emit([word, self.counts[word]])
"""

CHILD = """
if __name__ == "__main__":
    Count().run()
"""

TOPOLOGY = """
from itertools import cycle
from streamparse import Grouping, Spout, Topology

class Words(Spout):
    outputs = ["word"]
    def initialize(self, conf, context):
        self.words = cycle(("dog", "cat", "zebra", "elephant"))
    def next_tuple(self):
        self.emit([next(self.words)])

class Counting(Topology):
    words = Words.spec()
    count = Count.spec(inputs={words: Grouping.fields("word")})
"""


def main(python: str, pairs: int) -> None:
    """Measure, and print the rates and the ratio of their medians."""
    with tempfile.TemporaryDirectory() as folder:
        child, topology = Path(folder, "child.py"), Path(folder, "counting_topology.py")
        child.write_text(BOLT.format(package="pystorm") + CHILD)
        topology.write_text(BOLT.format(package="streamparse") + TOPOLOGY)
        serve_package("heron_compat_streamparse.served_packages:ServedPackages")
        definition = choose_topology(load_user_code(topology, ()), None).definition()
        behind, inside = [], []
        for number in range(pairs):
            behind.append(pipe_rate(python, child, folder))
            began_s = time.process_time()
            run = run_null_engine(definition, calls=TUPLES_INSIDE)
            inside.append(run.calls / (time.process_time() - began_s))
            print(f"pair {number + 1}: {behind[-1]:,.0f} behind the pipe, {inside[-1]:,.0f} inside")
    ratio = statistics.median(inside) / statistics.median(behind)
    print(f"medians: {statistics.median(behind):,.0f}, {statistics.median(inside):,.0f}; {ratio:.1f} times as many")


def pipe_rate(python: str, child: Path, folder: str) -> float:
    """Return the tuples of pystorm by CPU second of its process, from the first message to the last ack."""
    command = subprocess.Popen([python, str(child)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert command.stdin is not None
    assert command.stdout is not None
    with command, command.stdin as given, command.stdout as answers:
        given.write(encoded({**SETUP, "pidDir": folder}))
        given.flush()
        read_until(answers, b'"pid"', 1)
        messages = [
            encoded({"id": str(each), "comp": "words", "stream": "default", "task": 1, "tuple": [WORDS[each % 4]]})
            for each in range(TUPLES_PIPE)
        ]
        process = psutil.Process(command.pid)
        began_s = sum(process.cpu_times()[:2])
        writer = threading.Thread(target=lambda: (given.write(b"".join(messages)), given.flush()))
        writer.start()
        read_until(answers, b'"ack"', TUPLES_PIPE)
        used_s = sum(process.cpu_times()[:2]) - began_s
        writer.join()
    return TUPLES_PIPE / used_s


def encoded(message: object) -> bytes:
    """Return a message of Storm's multilang protocol."""
    return msgspec.json.encode(message) + b"\nend\n"


def read_until(answers: IO[bytes], word: bytes, count: int) -> None:
    """Read until a word has come that often, each in a line of its own."""
    seen, rest = 0, b""
    while seen < count:
        chunk = answers.read1(1 << 16)  # type: ignore[attr-defined]  # a buffered reader
        if not chunk:
            msg = f"the child ended after {seen} of {count} answers"
            raise SystemExit(msg)
        complete, newline, rest = (rest + chunk).rpartition(b"\n")
        seen += (complete + newline).count(word)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)

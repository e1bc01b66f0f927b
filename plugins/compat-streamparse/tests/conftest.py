"""Writes projects as ``sparse quickstart`` writes them, and loads them in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.api.capture import TopologySource
from heron.kernel.author_topology import choose_topology
from heron.kernel.user_code import load_user_code
from heron_compat_streamparse.served_packages import ServedPackages

LoadProject = Callable[..., TopologySource]

TOPOLOGY = '''"""
Word count topology
"""

from streamparse import Grouping, Topology

from bolts.wordcount import WordCountBolt
from spouts.words import WordSpout


class WordCount(Topology):
    word_spout = WordSpout.spec()
    count_bolt = WordCountBolt.spec(inputs={word_spout: Grouping.fields("word")}, par=2)
'''

BOLT = """import os
from collections import Counter

from streamparse import Bolt


class WordCountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counter = Counter()
        self.pid = os.getpid()
        self.total = 0

    def _increment(self, word, inc_by):
        self.counter[word] += inc_by
        self.total += inc_by

    def process(self, tup):
        word = tup.values[0]
        self._increment(word, 10 if word == "dog" else 1)
        if self.total % 1000 == 0:
            self.logger.info(
                f"counted [{self.total:,}] words [pid={self.pid}]"
            )
        self.emit([word, self.counter[word]])
"""

SPOUT = """from itertools import cycle

from streamparse import Spout


class WordSpout(Spout):
    outputs = ["word"]

    def initialize(self, stormconf, context):
        self.words = cycle(["dog", "cat", "zebra", "elephant"])

    def next_tuple(self):
        word = next(self.words)
        self.emit([word])
"""

CONFIG = """{
    "serializer": "json",
    "topology_specs": "topologies/",
    "virtualenv_specs": "virtualenvs/",
    "envs": {
        "prod": {
            "user": "",
            "ssh_password": "",
            "nimbus": "",
            "workers": [],
            "log": {
                "path": "",
                "max_bytes": 1000000,
                "backup_count": 10,
                "level": "info"
            },
            "virtualenv_root": ""
        }
    }
}"""

FILES = {
    "config.json": CONFIG,
    "src/bolts/__init__.py": "",
    "src/bolts/wordcount.py": BOLT,
    "src/spouts/__init__.py": "",
    "src/spouts/words.py": SPOUT,
    "topologies/wordcount.py": TOPOLOGY,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project that ``sparse quickstart wordcount`` of streamparse 5.0.1 writes, with the files that Heron reads."""
    folder = tmp_path / "wordcount"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadProject]:
    """Load a topology's file in this process, as its instances do; the process is restored afterwards."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def loaded(path: Path, *argv: str, name: str | None = None) -> TopologySource:
        ServedPackages.serve()
        code = load_user_code(path, argv, ServedPackages.project_folders(path))
        return choose_topology(code, name)

    yield loaded
    for name in set(sys.modules) - before:
        if not name.startswith("heron"):
            del sys.modules[name]

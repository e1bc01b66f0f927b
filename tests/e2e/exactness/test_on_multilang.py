"""Components of Storm's libraries and of other languages: every word arrives, also when children are killed."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from heron_testing.heron_run import processes_of
from heron_testing_servers.multilang import StormLibraries

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

LINES = 1_000
RUN_S = 200.0  # Storm's own libraries wait for a reply to each emit, and four pairs of processes share two cores

STORM_PY = """\
import storm


class Split(storm.BasicBolt):
    def process(self, tup):
        text, number = tup.values
        for place, word in enumerate(text.split()):
            storm.emit([word, number, place])


Split().run()
"""
STORM_JS = """\
const storm = require('./storm');

class Split extends storm.BasicBolt {
  process(tup, done) {
    const [text, number] = tup.values;
    text.split(' ').forEach((word, place) => {
      this.emit({tuple: [word, number, place], anchorTupleId: tup.id}, (taskIds) => {
        if (taskIds.length !== 1) throw new Error('one task receives it: ' + taskIds);
      });
    });
    done();
  }
}

new Split().run();
"""
STORM_RB = """\
require './storm'

class Split < Storm::Bolt
  def process(tup)
    text, number = tup.values
    text.split.each_with_index { |word, place| emit([word, number, place], :anchor => tup) }
    ack(tup)
  end
end

Split.new.run
"""
PYSTORM = """\
from pystorm import Bolt


class Split(Bolt):
    def process(self, tup):
        assert tup.values.text, "the fields have names"
        for place, word in enumerate(tup.values.text.split()):
            self.emit([word, tup.values.line, place])


if __name__ == "__main__":
    Split().run()
"""
STREAMPARSE = """\
from streamparse import BatchingBolt


class Split(BatchingBolt):
    outputs = ["word", "line", "place"]
    ticks_between_batches = 0

    def group_key(self, tup):
        return tup.values[1] % 2

    def process_batch(self, key, tups):
        print("a batch of", len(tups))  # on stdout, in front of a message
        for tup in tups:
            for place, word in enumerate(tup.values[0].split()):
                self.emit([word, tup.values[1], place])
"""
FILES = {
    "split_storm.py": STORM_PY,
    "split_storm.js": STORM_JS,
    "split_storm.rb": STORM_RB,
    "split_pystorm.py": PYSTORM,
    "split_streamparse.py": STREAMPARSE,
}
CHILDREN = ("storm.py", "storm.js", "storm.rb", "pystorm", "streamparse", "msgpack", "go")


class Languages:
    """The topology ``languages`` in a sandbox, with the children of a program."""

    def __init__(self, sandbox: Sandbox, libraries: StormLibraries, examples: Path, programs: Path) -> None:
        self.sandbox, self.libraries = sandbox, libraries
        self.folder, self.out = sandbox.root / "program", sandbox.root / "words"
        parts = self.folder / "parts"
        parts.mkdir(parents=True)
        self.out.mkdir()
        (parts / "__init__.py").touch()
        libraries.write_sources(parts)
        for name, text in FILES.items():
            (parts / name).write_text(text, encoding="utf-8")
        for name in ("languages.py", "recording.py"):
            shutil.copy(programs / name, self.folder)
        self.sources = examples / "languages" / "parts"
        self.parts = parts

    def child(self, name: str) -> dict[str, object]:
        """The arguments of a child's spec."""
        libraries = self.libraries
        if name == "go":
            libraries.build(self.sources / "split.go", self.parts / "split")
            return {"command": ["./split"]}
        run = libraries.streamparse_run
        children: dict[str, dict[str, object]] = {
            "storm.py": {"command": "python3", "script": "split_storm.py"},
            "storm.js": {"command": libraries.node, "script": "split_storm.js"},
            "storm.rb": {"command": libraries.ruby, "script": "split_storm.rb"},
            "pystorm": {"command": run, "script": "split_pystorm.Split"},
            "streamparse": {"command": run, "script": "split_streamparse.Split"},
            "msgpack": {"command": [*run, "-s", "msgpack"], "script": "split_pystorm.Split", "framing": "msgpack"},
        }
        return children[name]

    def start(self, mode: str, child: dict[str, object], *more: str) -> HeronRun:
        """Start it."""
        args = ("--out", str(self.out), "--lines", str(LINES), "--mode", mode, "--child", json.dumps(child), *more)
        return self.sandbox.start(self.folder / "languages.py", args=args)

    def words(self) -> Counter[tuple[int, int, str]]:
        """What has arrived, and how often."""
        (path,) = self.out.glob("words-*.json")
        return Counter((number, place, word) for number, place, word in json.loads(path.read_bytes()))

    def expected(self) -> dict[tuple[int, int], str]:
        """The words by line and place."""
        (path,) = self.out.glob("lines-*.json")
        (lines,) = json.loads(path.read_bytes())
        return {(number, place): f"word{number % each}" for number in range(lines) for place, each in enumerate((7, 5))}

    def children(self, run: HeronRun, component: str) -> list[psutil.Process]:
        """The child processes of the tasks of a component."""
        found = []
        for task in run.processes("instance", f"/{component}-"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += task.children()
        return found

    def kill_some(self, run: HeronRun, component: str, times: int) -> None:
        """Kill a child at work, and wait until words go on, some times."""
        self.sandbox.wait_for_tasks(run, "languages")
        for _ in range(times):
            run.grows(lambda: self.sandbox.executed("languages", "words"), "words", timeout_s=RUN_S)
            killed = self.children(run, component)[0]
            killed.kill()
            run.until(lambda: killed not in self.children(run, component), "its end")  # noqa: B023  # at once
        run.grows(lambda: self.sandbox.executed("languages", "words"), "words", timeout_s=RUN_S)


@pytest.fixture
def languages(sandbox: Sandbox, storm_libraries: StormLibraries, examples: Path, sandbox_programs: Path) -> Languages:
    """The topology, which a test starts."""
    return Languages(sandbox, storm_libraries, examples, sandbox_programs)


def arrived(words: Counter[tuple[int, int, str]]) -> dict[tuple[int, int], str]:
    """The words by line and place."""
    return {(number, place): word for number, place, word in words}


def ticking(child: dict[str, object], name: str) -> dict[str, object]:
    """A batching bolt of streamparse works on its batch when ticks come."""
    return {**child, "config": {"topology.tick.tuple.freq.secs": 0.2}} if name == "streamparse" else child


@pytest.mark.parametrize("name", CHILDREN)
def test_at_most_once_every_word_of_a_child_arrives_once(languages: Languages, name: str) -> None:
    """Without a fault nothing is lost or doubled, whatever the child is written in."""
    run = languages.start("ATMOST_ONCE", ticking(languages.child(name), name))
    report = run.finished(RUN_S)
    words = languages.words()
    assert arrived(words) == languages.expected()
    assert set(words.values()) == {1}
    assert report.components["split"].failed == 0


@pytest.mark.parametrize("name", CHILDREN)
def test_at_least_once_every_word_arrives_though_children_are_killed(languages: Languages, name: str) -> None:
    """What a child has when it dies fails, and is emitted again; the task goes on with another child."""
    (languages.out / "hold").touch()
    run = languages.start("ATLEAST_ONCE", ticking(languages.child(name), name))
    languages.kill_some(run, "split", 2)
    (languages.out / "hold").unlink()
    run.finished(RUN_S)
    assert arrived(languages.words()) == languages.expected()
    output = languages.sandbox.log_text("split-*.out*")
    assert "was killed by SIGKILL; its tuples fail" in output
    assert "component 'split', task" in output


def test_at_most_once_a_killed_child_loses_only_what_it_had(languages: Languages) -> None:
    """No word comes twice, and no more lines are missing than have failed."""
    (languages.out / "hold").touch()
    run = languages.start("ATMOST_ONCE", languages.child("go"), "--par", "1")
    languages.kill_some(run, "split", 2)
    (languages.out / "hold").unlink()
    report = run.finished(RUN_S)
    words = languages.words()
    assert set(words.values()) == {1}
    assert arrived(words).items() <= languages.expected().items()
    missing = {number for number, _ in languages.expected().keys() - arrived(words).keys()}
    assert len(missing) <= report.components["split"].failed


def test_effectively_once_every_word_of_a_child_without_memory_counts_once(languages: Languages) -> None:
    """A checkpoint waits for what the child has, and a killed child takes the topology back to the last one."""
    (languages.out / "hold").touch()
    run = languages.start("EFFECTIVELY_ONCE", languages.child("go"))
    languages.sandbox.wait_for_tasks(run, "languages")
    checkpoints = languages.sandbox.checkpoints
    for number in (1, 2):
        run.grows(lambda: int(checkpoints("languages")["complete"]), "complete checkpoints", timeout_s=RUN_S)
        languages.children(run, "split")[0].kill()
        run.until(lambda n=number: checkpoints("languages")["restores"] >= n, "a restore", RUN_S)  # type: ignore[misc]
    run.grows(lambda: int(checkpoints("languages")["complete"]), "complete checkpoints", timeout_s=RUN_S)
    (languages.out / "hold").unlink()
    run.finished(RUN_S)
    words = languages.words()
    assert arrived(words) == languages.expected()
    assert set(words.values()) == {1}


def test_a_spout_in_a_child_is_killed_and_emits_all_lines(languages: Languages) -> None:
    """A spout in C++, which begins again after a kill: at least once all words arrive."""
    languages.libraries.build(languages.sources / "lines.cpp", languages.parts / "lines")
    lines = 20_000  # so many that a child is killed at work; the next one begins again
    run = languages.start(
        "ATLEAST_ONCE", languages.child("go"), "--spout", json.dumps({"command": ["./lines", str(lines)]})
    )
    languages.kill_some(run, "lines", 1)
    run.finished(RUN_S)
    numbers = {(number, place) for number in range(lines) for place in range(2)}
    assert {(number, place) for number, place, _ in languages.words()} == numbers


def test_a_killed_task_takes_its_child_along(languages: Languages) -> None:
    """The kernel kills the child, so none is left behind, and the next task has its own."""
    (languages.out / "hold").touch()
    run = languages.start("ATLEAST_ONCE", languages.child("go"), "--par", "1")
    run.until(lambda: languages.children(run, "split"), "a child", RUN_S)
    (child,) = languages.children(run, "split")
    run.the("instance", "/split-").kill()
    run.until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the child has ended")
    languages.sandbox.wait_for_tasks(run, "languages")
    (languages.out / "hold").unlink()
    run.finished(RUN_S)
    assert arrived(languages.words()) == languages.expected()
    assert not [each for each in processes_of(languages.sandbox.home) if each.name() == "split"]


def test_the_example_of_four_languages_counts_exactly(
    sandbox: Sandbox, storm_libraries: StormLibraries, examples: Path
) -> None:
    """C++, Go, JavaScript and Python in one topology, as the documentation has it."""
    folder = sandbox.root / "languages"
    shutil.copytree(examples / "languages", folder)
    for source, program in (("lines.cpp", "lines"), ("split.go", "split")):
        storm_libraries.build(folder / "parts" / source, folder / "parts" / program)
    sandbox.environ["PATH"] = f"{Path(storm_libraries.node).parent}:{sandbox.env['PATH']}"
    run = sandbox.start(folder / "word_count_in_languages.py")
    run.finished(RUN_S)
    expected = Counter(f"word{number % each}" for number in range(1000) for each in (7, 5))
    assert str(sorted(expected.items())) in run.stdout

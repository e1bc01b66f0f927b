"""Components in Java, alone and beside Python: every word arrives, also when JVMs are killed."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from heron_runtime_jvm import compiled_classes, expanded_class_path, find_java
from heron_testing.heron_run import processes_of
from heron_testing_servers.storm import StormClient

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

LINES = 1_000
RUN_S = 300.0  # each JVM needs two seconds of a processor to start, and up to five start at once
KINDS = ("bolt", "spout", "between")


class Words:
    """The topology of ``jvm_words.py`` in a sandbox."""

    def __init__(self, sandbox: Sandbox, storm: StormClient, programs: Path) -> None:
        self.sandbox = sandbox
        self.folder, self.out = sandbox.root / "program", sandbox.root / "words"
        self.folder.mkdir()
        self.out.mkdir()
        for name in ("jvm_words.py", "languages.py", "recording.py"):
            shutil.copy(programs / name, self.folder)
        jars = f"{storm.jars}/*"
        path = expanded_class_path([jars], programs)
        classes = compiled_classes("tests", [programs / "jvm" / "Parts.java"], path, find_java())
        self.path = [str(classes), jars]

    def start(self, mode: str, kind: str, *more: str) -> HeronRun:
        """Start it."""
        args = ("--out", str(self.out), "--lines", str(LINES), "--mode", mode, "--kind", kind, *more)
        return self.sandbox.start(self.folder / "jvm_words.py", args=(*args, "--path", json.dumps(self.path)))

    def words(self) -> Counter[tuple[int, int, str]]:
        """What has arrived, and how often."""
        (path,) = self.out.glob("words-*.json")
        return Counter((number, place, word) for number, place, word in json.loads(path.read_bytes()))

    def expected(self) -> dict[tuple[int, int], str]:
        """The words by line and place."""
        (path,) = self.out.glob("lines-*.json")
        (lines,) = json.loads(path.read_bytes())
        return {(number, place): f"word{number % each}" for number in range(lines) for place, each in enumerate((7, 5))}

    def jvms(self, run: HeronRun, component: str) -> list[psutil.Process]:
        """The JVMs of the tasks of a component."""
        found = []
        for task in run.processes("instance", f"/{component}-"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += [each for each in task.children() if "heron.jvm.Main" in each.cmdline()]
        return found

    def kill_some(self, run: HeronRun, component: str, times: int) -> None:
        """Kill a JVM at work, and wait until words go on, some times."""
        self.sandbox.wait_for_tasks(run, "languages")
        for _ in range(times):
            run.grows(lambda: self.sandbox.executed("languages", "words"), "words", timeout_s=RUN_S)
            killed = self.jvms(run, component)[0]
            killed.kill()
            run.until(lambda: killed not in self.jvms(run, component), "its end")  # noqa: B023  # at once
        run.grows(lambda: self.sandbox.executed("languages", "words"), "words", timeout_s=RUN_S)


@pytest.fixture
def words(sandbox: Sandbox, storm_client: StormClient, sandbox_programs: Path) -> Words:
    """The topology, which a test starts."""
    return Words(sandbox, storm_client, sandbox_programs)


def arrived(words: Counter[tuple[int, int, str]]) -> dict[tuple[int, int], str]:
    """The words by line and place."""
    return {(number, place): word for number, place, word in words}


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_once_every_word_arrives_once(words: Words, kind: str) -> None:
    """Without a fault nothing is lost or doubled, whatever is in Java."""
    words.start("ATMOST_ONCE", kind).finished(RUN_S)
    found = words.words()
    assert arrived(found) == words.expected()
    assert set(found.values()) == {1}


@pytest.mark.parametrize(("kind", "killed"), [("bolt", "split"), ("spout", "split"), ("between", "pass")])
def test_at_least_once_every_word_arrives_though_jvms_are_killed(words: Words, kind: str, killed: str) -> None:
    """What a JVM has when it dies fails, and is emitted again; the task goes on with another JVM."""
    (words.out / "hold").touch()
    run = words.start("ATLEAST_ONCE", kind)
    words.kill_some(run, killed, 2)
    (words.out / "hold").unlink()
    run.finished(RUN_S)
    assert arrived(words.words()) == words.expected()
    output = words.sandbox.log_text(f"{killed}-*.out*")
    assert "was killed by SIGKILL; its tuples fail" in output


def test_at_most_once_a_killed_jvm_loses_only_what_it_had(words: Words) -> None:
    """No word comes twice, and some words are missing at most."""
    (words.out / "hold").touch()
    run = words.start("ATMOST_ONCE", "bolt", "--par", "1")
    words.kill_some(run, "split", 2)
    (words.out / "hold").unlink()
    run.finished(RUN_S)
    found = words.words()
    assert set(found.values()) == {1}
    assert arrived(found).items() <= words.expected().items()


def test_effectively_once_every_word_of_a_bolt_without_memory_counts_once(words: Words) -> None:
    """A checkpoint waits for what the JVM has, and a killed JVM takes the topology back to the last one."""
    (words.out / "hold").touch()
    run = words.start("EFFECTIVELY_ONCE", "bolt")
    words.sandbox.wait_for_tasks(run, "languages")
    checkpoints = words.sandbox.checkpoints
    run.grows(lambda: int(checkpoints("languages")["complete"]), "complete checkpoints", timeout_s=RUN_S)
    words.jvms(run, "split")[0].kill()
    run.until(lambda: checkpoints("languages")["restores"] >= 1, "a restore", RUN_S)
    run.grows(lambda: int(checkpoints("languages")["complete"]), "complete checkpoints", timeout_s=RUN_S)
    (words.out / "hold").unlink()
    run.finished(RUN_S)
    found = words.words()
    assert arrived(found) == words.expected()
    assert set(found.values()) == {1}


def test_a_killed_task_takes_its_jvm_along(words: Words) -> None:
    """The kernel kills the JVM, so none is left behind, and the next task has its own."""
    (words.out / "hold").touch()
    run = words.start("ATLEAST_ONCE", "bolt", "--par", "1")
    run.until(lambda: words.jvms(run, "split"), "a JVM", RUN_S)
    (jvm,) = words.jvms(run, "split")
    run.the("instance", "/split-").kill()
    run.until(lambda: not jvm.is_running() or jvm.status() == psutil.STATUS_ZOMBIE, "the JVM has ended")
    words.sandbox.wait_for_tasks(run, "languages")
    (words.out / "hold").unlink()
    run.finished(RUN_S)
    assert arrived(words.words()) == words.expected()
    assert not [each for each in processes_of(words.sandbox.home) if each.name() == "java"]


def test_the_example_of_a_bolt_in_java_counts_exactly(
    sandbox: Sandbox, storm_client: StormClient, examples: Path
) -> None:
    """As the documentation has it: compiled beside the topology, with the jars elsewhere."""
    folder = sandbox.root / "java"
    shutil.copytree(examples / "java", folder)
    jars = str(storm_client.jars)
    compiler = ["javac", "-proc:none", "-cp", f"{jars}/*", "-d", "java_parts/classes", "java_parts/CountWords.java"]
    subprocess.run(compiler, cwd=folder, check=True)
    sandbox.environ["STORM_JARS"] = jars
    run = sandbox.start(folder / "word_count_in_java.py")
    run.finished(RUN_S)
    once = ["that", "is", "the", "question", "or", "not"]
    expected = {"to": 20, "be": 20, **dict.fromkeys(once, 10)}
    assert str(sorted(expected.items())) in run.stdout

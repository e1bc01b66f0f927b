"""The profile `spark` as it is shipped: Spark on this machine, with local files."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING

import pytest

from heron.testing.pytest_plugin import wait_until

if TYPE_CHECKING:
    from conftest import Sandbox

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java of 17 or newer"),
]

_HERE = ("--profile", "spark")
_LOOPS, _BACK_S = 30, 60.0


def test_the_example_is_counted_exactly_and_can_be_watched(sandbox: Sandbox, examples: Path) -> None:
    """What the README says: submit, status, logs; the counts are those of the text."""
    counts = sandbox.root / "counts.tsv"
    args = ("--loops", str(_LOOPS), "--out", str(counts))
    run = sandbox.run(examples / "word_count.py", args=args, command="submit spark")
    assert run.wait() == 0, run.spoken
    said = sandbox.say("status", "word_count", *_HERE)
    assert "Spark application local-" in said
    for container in range(3):
        assert f"container {container}: executor driver on " in said
    wait_until(lambda: " words: the " in sandbox.say("logs", "word_count", *_HERE), _BACK_S, "what a task prints")
    wait_until(lambda: _is_over(sandbox), _BACK_S, "the end")
    words = Counter(word for text in topics.topics.values() for word in text.lower().split())
    rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
    assert {word: int(count) for word, count in rows} == {word: count * _LOOPS for word, count in words.items()}


def test_a_topology_that_was_killed_leaves_nothing(sandbox: Sandbox) -> None:
    """Neither processes nor files; of a JVM that is killed too."""
    run = sandbox.run("steady.py", command="submit spark")
    assert run.wait() == 0, run.spoken
    wait_until((run.out / "progress").exists, _BACK_S, "tuples")
    driver = run.the("spark driver")
    (jvm,) = (each for each in driver.children() if each.name() == "java")
    jvm.kill()
    wait_until(lambda: _attempts(sandbox) == [2, 2, 2], _BACK_S, "all containers run again")
    sandbox.say("kill", "steady", *_HERE)
    assert not run.processes("executor")


def _is_over(sandbox: Sandbox) -> bool:
    """Whether it is listed as finished and nothing of it is left; what has ended is tidied up by any list."""
    return "finished" in sandbox.say("list", "spark") and not sandbox.leftovers()


def _attempts(sandbox: Sandbox) -> list[int]:
    try:
        status = json.loads(sandbox.say("status", "steady", *_HERE, "--json"))
    except AssertionError:  # the topology manager is being started again, says the command
        return []
    return [each["attempts"] for each in status["containers"] if each["running"]]

"""A spout whose failed roots the engine emits again, on its task thread; the test plays the rest of the topology."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from heron.api.api_constants import (
    TOPOLOGY_DEAD_LETTERS_BYTES,
    TOPOLOGY_REPLAY_ATTEMPTS,
    TOPOLOGY_REPLAY_BACKOFF_SECS,
    TOPOLOGY_REPLAY_BYTES,
)
from heron.api.spout import Spout
from heron.instance.spout_runner import SpoutRunner
from heron.ipc.documents.letter_line import LetterLine
from parts.tracked_rest import Decide, Rest, first_time, sent_end

REPLAYS = {TOPOLOGY_REPLAY_ATTEMPTS: 2, TOPOLOGY_REPLAY_BACKOFF_SECS: 0.01}


class Numbers(Spout):
    """Emits `count` numbers, one per call, and ends; it keeps nothing of what it emitted."""

    outputs = ("v",)
    count = 5

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.emitted = 0
        self.outcomes: list[tuple[str, object]] = []

    def next_tuple(self) -> None:
        if self.emitted == self.count:
            self.end()
            return
        self.emit([self.emitted], tup_id=f"id-{self.emitted}")
        self.emitted += 1

    def ack(self, tup_id: object) -> None:
        self.outcomes.append(("ack", tup_id))

    def fail(self, tup_id: object) -> None:
        self.outcomes.append(("fail", tup_id))


def run(rest: Rest, folder: Path, component: type[Numbers] = Numbers) -> Numbers:
    rest.task.spec = replace(rest.task.spec, log_dir=str(folder))
    made = rest.run(SpoutRunner, component)
    assert isinstance(made.component, Numbers)
    return made.component


def letters(folder: Path) -> list[LetterLine]:
    (file,) = folder.glob("dead-letters-1.jsonl")
    return [msgspec.json.decode(line, type=LetterLine) for line in file.read_bytes().splitlines()]


def always(how: str, *values: object) -> Decide:
    return lambda value: how if value in values else "ack"


def test_a_failed_root_is_emitted_again_and_the_spout_hears_only_the_ack(tmp_path: Path) -> None:
    """The spout has ended meanwhile; the task ends when the replay is acked."""
    rest = Rest("spout", first_time("fail", 1, 3), sent_end, config=REPLAYS)
    component = run(rest, tmp_path)
    assert rest.events[:5] == [0, 1, 2, 3, 4]
    assert sorted(map(str, rest.events[5:])) == ["1", "3", "END"]
    assert sorted(component.outcomes) == [("ack", f"id-{number}") for number in range(5)]
    assert list(tmp_path.iterdir()) == []
    metrics = {each.name: each.value for each in rest.task.metrics.snapshot([], 0.0)}
    assert (metrics["replay-count"], metrics["replay-bytes"], metrics["dead-letter-count"]) == (2, 0, 0)


def test_a_root_that_always_fails_becomes_a_dead_letter(tmp_path: Path) -> None:
    """Its neighbours are acked; `fail` is called once, after the last attempt; only the owner can read the file."""
    rest = Rest("spout", always("fail", 2), sent_end, config=REPLAYS)
    component = run(rest, tmp_path)
    assert rest.events.count(2) == 3
    assert component.outcomes.count(("fail", "id-2")) == 1
    assert len(component.outcomes) == 5
    (letter,) = letters(tmp_path)
    assert (letter.shown, letter.tup_id, letter.failures, letter.outcome) == (("2",), "'id-2'", 3, "failed")
    assert (letter.spout, letter.stream, letter.id) == ("spout", "default", "1-0-1")
    assert letter.emitted_s < letter.failed_s
    assert stat.S_IMODE((tmp_path / "dead-letters-1.jsonl").stat().st_mode) == 0o600


def test_a_full_budget_stops_new_roots_and_drops_nothing(tmp_path: Path) -> None:
    """A kilobyte of values is full after each flush, so no root joins those that fail."""

    class Large(Numbers):
        def next_tuple(self) -> None:
            if self.emitted < self.count:
                self.emit([str(self.emitted) * 2000], tup_id=self.emitted)
                self.emitted += 1
            else:
                self.end()

    first = "0" * 2000
    rest = Rest("spout", always("fail", first), sent_end, config={**REPLAYS, TOPOLOGY_REPLAY_BYTES: 1024})
    component = run(rest, tmp_path, Large)
    assert rest.events[:3] == [first] * 3, "the first root uses the budget until it is given up"
    assert sorted(component.outcomes) == [("ack", 1), ("ack", 2), ("ack", 3), ("ack", 4), ("fail", 0)]


def test_full_files_drop_the_oldest_letters_and_count_them(tmp_path: Path) -> None:
    """Two parts of 32 KiB."""

    class Many(Numbers):
        count = 400

    rest = Rest("spout", lambda _value: "fail", sent_end, config={**REPLAYS, TOPOLOGY_DEAD_LETTERS_BYTES: 64 * 1024})
    run(rest, tmp_path, Many)
    parts = sorted(tmp_path.iterdir())
    assert [each.name for each in parts] == ["dead-letters-1.jsonl", "dead-letters-1.jsonl.1"]
    assert all(each.stat().st_size <= 32 * 1024 for each in parts)
    metrics = {each.name: each.value for each in rest.task.metrics.snapshot([], 0.0)}
    kept = sum(each.read_bytes().count(b"\n") for each in parts)
    assert metrics["dead-letters-dropped"] == 400 - kept > 0
    assert metrics["dead-letter-count"] == 400


def test_a_letter_that_cannot_be_written_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The spout goes on."""
    rest = Rest("spout", always("fail", 0), sent_end, config=REPLAYS)
    run(rest, tmp_path / "absent")
    assert "writing a dead letter" in capsys.readouterr().err


def test_without_the_key_the_spout_hears_of_each_failure(tmp_path: Path) -> None:
    """As in Heron."""

    class Again(Numbers):
        def fail(self, tup_id: object) -> None:
            super().fail(tup_id)
            self.emit([1], tup_id=tup_id)

    rest = Rest("spout", first_time("fail", 1), sent_end)
    component = run(rest, tmp_path, Again)
    assert ("fail", "id-1") in component.outcomes

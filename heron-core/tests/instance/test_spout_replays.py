"""A spout whose failed roots the engine emits again, on its task thread; the test plays the rest of the topology."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

import msgspec
import numpy as np
import pytest

from heron.api.api_constants import (
    TOPOLOGY_DEAD_LETTERS_BYTES,
    TOPOLOGY_MAX_SPOUT_PENDING,
    TOPOLOGY_REPLAY_ATTEMPTS,
    TOPOLOGY_REPLAY_BACKOFF_SECS,
    TOPOLOGY_REPLAY_BYTES,
)
from heron.api.dead_letter import DeadLetter
from heron.api.spout import Spout
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.queues.data_queue import DataIn, LettersAsked
from heron.instance.replay.kept_roots import KeptRoot
from heron.instance.replay.letter_store import TaskName
from heron.instance.replay.pickled_letter import LetterRow, letter_line, letter_row
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.spout_replays import SpoutReplays
from heron.instance.spout_runner import SpoutRunner
from heron.ipc.documents.letter_line import LetterLine, decode_letters_answer
from heron.ipc.frames.tracking import RootOutcome
from heron_testing.fake_clock import FakeClock
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
    file = folder / "dead-letters-1.jsonl"
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


def test_ids_may_be_arrays_and_rows_without_an_id_are_not_kept(tmp_path: Path) -> None:
    """An array cannot be compared with None."""

    class Arrays(Numbers):
        def next_tuple(self) -> None:
            if self.emitted == self.count:
                self.end()
                return
            self.emit([self.emitted], tup_id=None if self.emitted == 2 else np.array([self.emitted, 7]))
            self.emitted += 1

    rest = Rest("spout", first_time("fail", 1, 3), sent_end, config=REPLAYS)
    component = run(rest, tmp_path, Arrays)
    assert sorted(map(str, rest.events)) == ["0", "1", "1", "2", "3", "3", "4", "END"]
    assert sorted((how, int(tup_id[0])) for how, tup_id in component.outcomes) == [  # type: ignore[index]  # arrays
        ("ack", number) for number in (0, 1, 3, 4)
    ]


class Refusing:
    """A collector whose grouping, by the author, raises."""

    streams: ClassVar[dict[str, object]] = {}

    def emit(self, *_arguments: object) -> None:
        """Raise."""
        message = "no such shard"
        raise LookupError(message)

    def flush(self) -> None:
        """Nothing was emitted."""


def test_a_root_that_the_author_does_not_let_out_again_becomes_a_dead_letter() -> None:
    """A grouping may raise for the tasks of today; the task of the spout goes on."""
    clock, store = FakeClock(), Kept()
    policy = ReplayPolicy(2, 0.01, 1000)
    emitter = cast("SpoutEmitter", Refusing())
    name, pending = TaskName("lines", 1, 0), PendingRoots(clock.monotonic_s)
    replays = SpoutReplays(policy, name, emitter, pending, store, clock.monotonic_s)
    replays.replayer.kept(1, 10)
    assert replays.replayer.failed([KeptRoot("id", "row", "default", (), 10)], RootOutcome.FAILED, 0.0) == []
    while replays.waiting:
        clock.advance(1.0)
        replays.emit_due(10)
    letter = DeadLetter(*store.letters[0])
    assert len(store.letters) == 1
    assert (letter.tup_id, letter.failures, letter.component) == ("id", 3, "lines")
    assert letter.error == "LookupError: no such shard"
    assert replays.replayer.kept_bytes == 0
    store.stored["1-0-1"] = letter_line(letter_row(letter), "1-0-1", "lines")
    for _ in range(2):
        assert replays.take_letters(["1-0-1"], drop=False) == {"1-0-1": "LookupError: no such shard"}
        assert [*store.stored] == ["1-0-1"], "it stays"


def test_a_replay_leaves_before_a_call_that_may_block(tmp_path: Path) -> None:
    """The timer of the linger fires between the replay's emit and the next call, which may wait long for its source."""
    emitters: list[SpoutEmitter] = []
    waiting: list[int] = []
    is_over = False

    class Blocking(Numbers):
        count = 1

        def __init__(self, delegate: object = None) -> None:
            super().__init__(delegate)
            emitters.append(cast("SpoutEmitter", delegate))

        def next_tuple(self) -> None:
            if self.emitted < self.count:
                super().next_tuple()
            elif is_over:
                waiting.append(emitters[0].pending_rows())
                self.end()

    def until(rest: Rest) -> bool:
        nonlocal is_over
        if emitters and emitters[0].pending_rows() and not is_over:
            is_over = True
            rest.gateway.data_out.end_linger()
        return sent_end(rest)

    run(Rest("spout", first_time("fail", 0), until, config=REPLAYS), tmp_path, Blocking)
    assert waiting == [0]


def test_a_replay_that_has_no_free_root_yet_does_not_keep_the_task_awake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both places are taken by trees that do not end, so only an outcome helps, and it wakes the task."""
    clock = FakeClock(monotonic_s=0.0)
    monkeypatch.setattr(SpoutReplays.__init__, "__defaults__", (clock.monotonic_s,))
    waits: list[float] = []
    wait = DataIn.wait

    def short_wait(queue: DataIn, most_s: float) -> float:
        waits.append(most_s)
        return wait(queue, min(most_s, 0.002))

    monkeypatch.setattr(DataIn, "wait", short_wait)

    def until(rest: Rest) -> bool:
        if rest.events == [0, 1, 2] and clock.monotonic_s() < 1.0:
            clock.advance(1.0)
            waits.clear()
        return len(waits) > 20

    config = {**REPLAYS, TOPOLOGY_MAX_SPOUT_PENDING: 2}
    rest = Rest("spout", lambda value: "fail" if value == 0 else "keep", until, config=config)
    run(rest, tmp_path)
    assert rest.events == [0, 1, 2], "the replay is due and finds no place"
    assert clock.monotonic_s() >= 1.0
    assert min(waits) > 0.0


class Kept:
    """The letters of one task, in memory."""

    dropped = 0
    is_full = False

    def __init__(self) -> None:
        self.letters: list[LetterRow] = []
        self.stored: dict[str, LetterLine] = {}
        self.changes = 0

    def add(self, letters: Mapping[str, LetterRow]) -> None:
        """Keep them."""
        self.letters += letters.values()

    def find(self, ids: Collection[str]) -> list[LetterLine]:
        """Find those."""
        return [self.stored[each] for each in ids if each in self.stored]

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """Take those."""
        return [self.stored.pop(each) for each in ids if each in self.stored]

    def change(self, changes: Mapping[str, LetterRow | None]) -> bool:
        """Change them, unless the disk is full."""
        self.changes += bool(changes)
        if not self.is_full:
            for each, letter in changes.items():
                self.stored.pop(each)
                if letter is not None:
                    self.stored[each] = letter_line(letter, each, "lines")
        return not self.is_full


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


class Waiting(Numbers):
    """Ends when the task has answered as often as the test asks."""

    rest: Rest
    asked = 1

    def next_tuple(self) -> None:
        if self.emitted < self.count:
            super().next_tuple()
        elif len(self.rest.answers) == self.asked:
            self.end()


def ask_when(rest: Rest, ready: Callable[[], bool], *asked: LettersAsked) -> None:
    """Asks the task one thing after the other, each when the files are ready."""
    waiting = list(asked)

    def until(rest: Rest) -> bool:
        if waiting and ready() and len(rest.answers) == len(asked) - len(waiting):
            rest.gateway.data_in.put(waiting.pop(0))
        return sent_end(rest)

    rest.until = until


def test_stored_letters_are_emitted_again_or_dropped(tmp_path: Path) -> None:
    """The author hears nothing of it: `fail` was called before."""
    acked = [False]

    def decide(value: object) -> str:
        return "fail" if value in (1, 3) and not acked[0] else "ack"

    def ready() -> bool:
        acked[0] = len(list(tmp_path.glob("*"))) > 0 and len(letters(tmp_path)) == 2
        return acked[0]

    rest = Rest("spout", decide, sent_end, config=REPLAYS)
    one = LettersAsked(7, frozenset({"1-0-1", "1-0-9"}), drop=False)
    ask_when(rest, lambda: acked[0] or ready(), one, LettersAsked(8, frozenset({"1-0-2"}), drop=True))
    component = run(rest, tmp_path, type("Asked", (Waiting,), {"rest": rest, "asked": 2}))
    assert [each.request_id for each in rest.answers] == [7, 8]
    assert [dict(decode_letters_answer(each.document).found) for each in rest.answers] == [{"1-0-1": ""}, {"1-0-2": ""}]
    assert letters(tmp_path) == []
    assert rest.events.count(1) + rest.events.count(3) == 7, "three times each, and one of them once more"
    assert sorted(component.outcomes) == [
        *[("ack", f"id-{number}") for number in (0, 2, 4)],
        *[("fail", f"id-{number}") for number in (1, 3)],
    ]


def test_a_replayed_letter_that_fails_again_is_a_letter_again(tmp_path: Path) -> None:
    """With its id, and with the reason of its newest failure."""
    rest = Rest("spout", always("fail", 2), sent_end, config=REPLAYS)
    stored = lambda: len(list(tmp_path.glob("*"))) > 0  # noqa: E731
    ask_when(rest, stored, LettersAsked(7, frozenset({"1-0-1"}), drop=False))
    run(rest, tmp_path, type("Asked", (Waiting,), {"rest": rest}))
    (letter,) = letters(tmp_path)
    assert (letter.id, letter.shown, letter.failures) == ("1-0-1", ("2",), 3)
    assert rest.events.count(2) == 6
    metrics = {each.name: each.value for each in rest.task.metrics.snapshot([], 0.0)}
    assert metrics["dead-letter-count"] == 2


class Emitting:
    """A collector that keeps the ids of what is emitted."""

    streams: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        self.ids: list[object] = []

    def emit(self, _values: object, tup_id: object, _stream: object) -> None:
        """Keep the id."""
        self.ids.append(tup_id)

    def flush(self) -> None:
        """Nothing waits."""


def replayed(store: Kept, count: int) -> tuple[SpoutReplays, Emitting]:
    """Letters of a store that are emitted again; each may fail once."""
    emitter, clock = Emitting(), FakeClock()
    pending = PendingRoots(clock.monotonic_s)
    name, policy = TaskName("lines", 1, 0), ReplayPolicy(0, 0.01, 1000)
    replays = SpoutReplays(policy, name, cast("SpoutEmitter", emitter), pending, store, clock.monotonic_s)
    letter = DeadLetter([1], "default", "id", 3, "failed", "check", 4, "ValueError: no", "", 5.0, 5.0)
    store.stored = {
        f"1-0-{number}": letter_line(letter_row(letter), f"1-0-{number}", "lines") for number in range(count)
    }
    assert replays.take_letters([*store.stored], drop=False) == dict.fromkeys(store.stored, "")
    return replays, emitter


def test_a_letter_stays_stored_until_its_tree_is_complete() -> None:
    """The process may die before that. Meanwhile it is neither emitted again nor dropped."""
    store = Kept()
    replays, emitter = replayed(store, 1)
    waits = {"1-0-0": "it was emitted again, and waits for its ack"}
    assert replays.take_letters(["1-0-0"], drop=False) == replays.take_letters(["1-0-0"], drop=True) == waits
    assert (len(emitter.ids), [*store.stored]) == (1, ["1-0-0"])
    replays.replayer.note_acked(["of the author", *emitter.ids])
    assert store.stored == {}


def test_the_store_is_changed_seldom_and_no_ended_letter_waits_for_a_few() -> None:
    """A change writes whole files. Nothing may be left when all trees have ended."""
    store = Kept()
    replays, emitter = replayed(store, 1000)
    for number, each in enumerate(emitter.ids, 1):
        replays.replayer.note_acked([each])
        assert len(store.stored) <= 2 * (1000 - number)
    assert store.changes <= 10


def test_a_letter_whose_end_cannot_be_written_is_not_emitted_twice() -> None:
    """The disk is full when it is acked, and not any more when somebody asks again."""
    store = Kept()
    replays, emitter = replayed(store, 2)
    store.is_full = True
    for each in emitter.ids[:1]:
        replays.replayer.note_acked([each])
    root = KeptRoot(emitter.ids[1], 1, "default", (), 0)
    replays.replayer.failed([root], RootOutcome.FAILED, 0.0)
    assert replays.take_letters(["1-0-0"], drop=False) == {}
    assert replays.take_letters(["1-0-1"], drop=False) == {"1-0-1": ""}, "it has failed again"
    store.is_full = False
    replays.replayer.note_acked(emitter.ids[2:])
    assert store.stored == {}


def test_letters_are_free_again_when_the_spout_is_constructed_again() -> None:
    """What waits for its next emission is dropped then; the store still has the letters."""
    store = Kept()
    replays, emitter = replayed(store, 1)
    replays.forget()
    assert replays.take_letters(["1-0-0"], drop=False) == {"1-0-0": ""}
    replays.replayer.note_acked(emitter.ids[1:])
    assert store.stored == {}


def test_a_letter_that_cannot_be_emitted_stays_with_the_reason(tmp_path: Path) -> None:
    """Its stream may be gone in another version of the topology."""
    rest = Rest("spout", always("fail", 0), sent_end, config=REPLAYS)
    path = tmp_path / "dead-letters-1.jsonl"

    def ready() -> bool:
        if path.exists() and b'"stream":"gone"' not in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b'"stream":"default"', b'"stream":"gone"'))
        return path.exists()

    ask_when(rest, ready, LettersAsked(7, frozenset({"1-0-1"}), drop=False))
    run(rest, tmp_path, type("Asked", (Waiting,), {"rest": rest}))
    (answer,) = rest.answers
    assert "emit to unknown stream, a str; declared: " in decode_letters_answer(answer.document).found["1-0-1"]
    assert [each.id for each in letters(tmp_path)] == ["1-0-1"]


def test_a_spout_without_replays_refuses(tmp_path: Path) -> None:
    """The refusal says what to set."""
    rest = Rest("spout", first_time("ack"), sent_end)
    ask_when(rest, lambda: True, LettersAsked(7, frozenset({"1-0-1"}), drop=True))
    run(rest, tmp_path, type("Asked", (Waiting,), {"rest": rest}))
    (answer,) = rest.answers
    assert answer.refusal.startswith("task spout/1: it stores no dead letters, because topology.replay.attempts")


def test_without_the_key_the_spout_hears_of_each_failure(tmp_path: Path) -> None:
    """As in Heron."""

    class Again(Numbers):
        def fail(self, tup_id: object) -> None:
            super().fail(tup_id)
            self.emit([1], tup_id=tup_id)

    rest = Rest("spout", first_time("fail", 1), sent_end)
    component = run(rest, tmp_path, Again)
    assert ("fail", "id-1") in component.outcomes

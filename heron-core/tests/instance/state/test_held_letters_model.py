"""Dead letters effectively once, in random orders of everything that may happen to a task and its file."""

from __future__ import annotations

import copy
import errno
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heron.instance.state.held_letters import HeldLetters
from heron.ipc.documents.letter_line import LetterLine
from heron.kernel.dead_letter_file import DeadLetterFile, letter_files

SIZE_BYTES = 1 << 20
WORLDS, STEPS = 150, 40


class Died(BaseException):
    """The process of the task has died."""


class Disk(DeadLetterFile):
    """A file that is full, or whose process dies while it writes: `fault` says which, and when."""

    fault = ""
    torn = 0.0

    def append_once(self, letters: Collection[LetterLine], checkpoint: int, *, search: bool) -> int:
        if self.fault == "full":
            raise OSError(errno.ENOSPC, "the disk is full")
        before = self.path.stat().st_size if self.path.exists() else 0
        count = super().append_once(list(letters), checkpoint, search=search)
        if self.fault == "dies in append":
            with self.path.open("r+b") as file:
                file.truncate(before + int(self.torn * (self.path.stat().st_size - before)))
            raise Died
        if self.fault == "dies behind append":
            raise Died
        return count

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        taken = super().take(ids)
        if self.fault == "dies behind take":
            raise Died
        return taken


@dataclass
class State:
    """What a checkpoint saves of a task: its place in the input, and the letters that it has processed again."""

    place: int = 0
    again: list[str] = field(default_factory=list)


class World:
    """One task at a time, its checkpoints, its file, and a person who drops letters or has them processed again."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.task_id = 1
        self.number = self.complete = 0
        self.saved: dict[int, tuple[State, bytes, int]] = {0: (State(), b"", 1)}
        self.dropped: list[str] = []
        self.steps: list[str] = []
        self.start(1)

    def start(self, task_id: int) -> None:
        """A process of a task begins with the newest complete checkpoint, until one gets so far."""
        self.task_id = task_id
        while True:
            state, payload, former = self.saved[self.complete]
            self.state = copy.deepcopy(state)
            self.saved = {each: saved for each, saved in self.saved.items() if each <= self.complete}
            file = Disk.of_task(self.folder, task_id, SIZE_BYTES)
            assert isinstance(file, Disk)
            self.held = HeldLetters(file, task_id, lambda *_: None)
            try:
                with_fault(file, self.random)
                self.held.restore(payload, former)
                self.held.complete(self.complete)
            except Died:
                continue
            file.fault = ""
            return

    def record(self) -> None:
        self.state.place += 1
        if self.state.place % 2:
            self.held.add(LetterLine("", "lines", "default", (), str(self.state.place), 1, "failed"))

    def save(self) -> None:
        self.number += 1
        self.saved[self.number] = copy.deepcopy(self.state), self.held.save(self.number) or b"", self.task_id

    def becomes_complete(self) -> None:
        self.complete = max(self.saved)

    def hears_of_it(self) -> None:
        file = self.held.file
        assert isinstance(file, Disk)
        with_fault(file, self.random)
        try:
            self.held.complete(self.complete)
        except Died:
            self.start(self.task_id)
        file.fault = ""

    def dies(self) -> None:
        self.start(self.task_id)

    def moves(self) -> None:
        """An update gives the instance another task, when the former one has committed a checkpoint."""
        self.save()
        self.becomes_complete()
        self.hears_of_it()
        self.record()  # of the old task, until the plan comes
        self.drops()
        self.start(self.task_id + 1)

    def letter(self) -> LetterLine | None:
        stored = list(self.held.file.letters())
        return self.random.choice(stored) if stored else None

    def drops(self) -> None:
        letter = self.letter()
        if letter is not None and not self.held.is_processed_again(letter.id):
            self.dropped += [each.tup_id for each in self.held.file.take([letter.id])]

    def processes_again(self) -> None:
        letter = self.letter()
        if letter is not None and not self.held.is_processed_again(letter.id):
            self.state.again.append(letter.tup_id)
            self.held.processed_again(letter.id)

    def ends(self) -> None:
        """The last checkpoint, without faults."""
        self.save()
        self.becomes_complete()
        self.held.complete(self.complete)

    def play(self) -> None:
        events: list[Callable[[], None]] = [
            *[self.record] * 4,
            *[self.save, self.becomes_complete, self.hears_of_it] * 2,
            *(self.dies, self.moves, self.drops, self.processes_again, self.processes_again),
        ]
        for _ in range(STEPS):
            event = self.random.choice(events)
            self.steps.append(event.__name__)
            event()
        self.ends()

    def check(self) -> None:
        letters = [each for file in letter_files(self.folder) for each in file.letters()]
        poison = {str(place) for place in range(1, self.state.place + 1, 2)}
        assert Counter(each.tup_id for each in letters) == Counter(poison - {*self.dropped, *self.state.again})
        assert len({each.id for each in letters}) == len(letters)
        assert len(set(self.state.again)) == len(self.state.again), "an effect is there twice"


def with_fault(file: Disk, chance: random.Random) -> None:
    """One of three calls goes wrong."""
    faults = ("full", "dies in append", "dies behind append", "dies behind take")
    file.fault, file.torn = chance.choice([*faults, *[""] * 8]), chance.random()


@pytest.mark.parametrize("first", range(0, WORLDS, 50))
def test_each_failed_record_is_one_letter_until_it_is_dropped_or_processed(tmp_path: Path, first: int) -> None:
    """Whatever dies, moves, is full or is torn: no letter is lost, written twice, or comes back."""
    for seed in range(first, first + 50):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, seed)
        try:
            world.play()
            world.check()
        except Exception as error:
            error.add_note(f"seed {seed}: {', '.join(world.steps)}")
            raise

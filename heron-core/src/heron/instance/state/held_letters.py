"""The dead letters of a task effectively once: each is part of a checkpoint, and written once that is complete. Pure.

A letter is held with the state of the task. A checkpoint saves all letters that are not written, so those of a
checkpoint that failed are in the next one. A restore forgets what came after its checkpoint, and writes what that
checkpoint holds, unless the file says that it is written. A letter that is processed again leaves the file in the same
way, with the checkpoint that has the effects. Decision 065.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import msgspec

from heron.ipc.documents.letter_line import LetterLine
from heron.kernel.dead_letter_file import DeadLetterFile

__all__ = ["HeldLetters"]


class _Part(msgspec.Struct):
    """What one checkpoint adds: letters, and the ids of letters that were processed again."""

    checkpoint: int
    letters: list[LetterLine]
    gone: list[str]


@dataclass(slots=True)
class _New:
    letters: list[LetterLine] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class HeldLetters:
    """Letters by the checkpoint that saved them first. Belongs to the task thread.

    `written` counts the letters in the file, `dropped` those without room. `report` hears of a file that cannot be
    changed: then the letters go on being held, and the next complete checkpoint tries again.
    """

    def __init__(self, file: DeadLetterFile, task_id: int, report: Callable[[str, BaseException, str], object]) -> None:
        self.file = file
        self.written = 0
        self._task_id = task_id
        self._report = report
        self._new = _New()
        self._parts: list[_Part] = []
        self._held_bytes = 0
        self._held_dropped = 0
        self._doubtful = True  # whether the file may have letters that are held

    @property
    def dropped(self) -> int:
        """Letters for which there was no room."""
        return self.file.dropped + self._held_dropped

    def add(self, letter: LetterLine) -> None:
        """Holds a letter; its id is made by the next `save`. More than one part of the file would hold are dropped."""
        size_bytes = self.file.size_of(letter)
        if self._held_bytes + size_bytes > self.file.part_bytes:
            self._held_dropped += 1
            return
        self._held_bytes += size_bytes
        self._new.letters.append(letter)

    def is_processed_again(self, letter_id: str) -> bool:
        """Whether a stored letter was processed again, and waits for a checkpoint."""
        return letter_id in self._new.gone or any(letter_id in each.gone for each in self._parts)

    def processed_again(self, letter_id: str) -> None:
        """A stored letter was processed: it leaves the file with the checkpoint that has its effects."""
        self._new.gone.append(letter_id)

    def save(self, number: int) -> bytes | None:
        """What a checkpoint saves: all letters and removals that are not in the file; None if there are none."""
        new, self._new = self._new, _New()
        letters = [
            msgspec.structs.replace(each, id=f"{self._task_id}-c{number}-{place}")
            for place, each in enumerate(new.letters, 1)
        ]
        if letters or new.gone:
            self._parts.append(_Part(number, letters, new.gone))
        return msgspec.json.encode(self._parts) if self._parts else None

    def complete(self, number: int) -> None:
        """This checkpoint is complete: changes the file by what it and earlier ones hold."""
        parts = [each for each in self._parts if each.checkpoint <= number]
        if not parts:
            return
        letters = [letter for part in parts for letter in part.letters]
        gone = {each for part in parts for each in part.gone}
        try:
            self.written += self.file.append_once(letters, number, search=self._doubtful)
            self.file.take(gone)
        except OSError as error:
            self._doubtful = True
            self._report("writing dead letters", error, "they are held, and written with the next checkpoint")
            return
        self._doubtful = False
        self._parts = self._parts[len(parts) :]
        self._held_bytes = sum(map(self.file.size_of, self._held()))

    def restore(self, payload: bytes, task_id: int) -> None:
        """Goes on with what the checkpoint of a task holds; the task may be one that this task replaces."""
        self._new, self._parts, self._doubtful = _New(), [], True
        written = 0
        try:
            self.file.adopt(task_id)
            written = self.file.last_checkpoint()
        except OSError as error:
            self._report("reading dead letters", error, "letters of the checkpoint may be written twice")
        if payload:
            held = msgspec.json.decode(payload, type=list[_Part])
            for each in held:  # their letters may have been dropped since; removals can be repeated
                each.letters = each.letters if each.checkpoint > written else []
            self._parts = held
        self._held_bytes = sum(map(self.file.size_of, self._held()))

    def _held(self) -> Collection[LetterLine]:
        return [*(letter for part in self._parts for letter in part.letters), *self._new.letters]

"""Where dead letters stay that no bolt receives: those of a spout, and those of steps (decision 064)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from heron.api.api_constants import TOPOLOGY_DEAD_LETTERS_BYTES
from heron.api.config import setting
from heron.api.dead_letter import DeadLetter
from heron.errors import HeronError, SerializationError
from heron.instance.replay.pickled_letter import LetterRow, letter_line, letter_row, values_of
from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.metric_names import DEAD_LETTER_COUNT
from heron.kernel.dead_letter_file import DeadLetterFile
from heron.kernel.role_spec import InstanceSpec
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["LetterStore", "StoredLetters", "TaskName"]

Report = Callable[[str, BaseException, str, object], object]
"""Gets what was done, the error, what happens instead, and the record."""
Named = Callable[[str, str, Sequence[object]], object]
"""Gets a component, a stream of it and values, and returns the values by their names."""


class TaskName(NamedTuple):
    """Which task it is."""

    component: str
    task_id: int
    incarnation: int


class LetterStore(Protocol):
    """Where dead letters stay that no bolt receives."""

    @property
    def dropped(self) -> int:
        """Letters for which there was no room any more."""
        ...

    def add(self, letters: Mapping[str, LetterRow]) -> None:
        """Adds letters by their ids; reports them if that is not possible."""
        ...

    def find(self, ids: Collection[str]) -> list[LetterLine]:
        """The letters with these ids, as far as they exist.

        Raises:
            OSError: when they cannot be read, or others can write them.
        """
        ...

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """Removes the letters with these ids, and returns those that there were.

        Raises:
            OSError: when that is not possible; then no letter is gone.
        """
        ...

    def change(self, changes: Mapping[str, LetterRow | None]) -> bool:
        """Replaces letters by their ids, or removes them; False if that is not possible, which it reports."""
        ...


class StoredLetters:
    """`LetterStore` in the file of a task.

    `report` hears of letters that cannot be written, with their values as `named` gives them.
    """

    def __init__(self, file: DeadLetterFile, task: TaskName, report: Report, named: Named) -> None:
        self.task = task
        self._named = named
        self._file = file
        self._report = report
        self._of_steps: Counter[str] = Counter()
        self.take = file.take

    @classmethod
    def of_task(cls, spec: InstanceSpec, config: Mapping[str, object], report: Report, named: Named) -> Self:
        """The letters in the file beside the logs of a task."""
        size_bytes = int(str(setting(config, TOPOLOGY_DEAD_LETTERS_BYTES)))
        file = DeadLetterFile.of_task(Path(spec.log_dir), spec.task_id, size_bytes)
        return cls(file, TaskName(spec.component, spec.task_id, spec.incarnation), report, named)

    @property
    def dropped(self) -> int:
        """`LetterStore.dropped`."""
        return self._file.dropped

    def add(self, letters: Mapping[str, LetterRow]) -> None:
        """`LetterStore.add`."""
        lines = [self._line(number, letter) for number, letter in letters.items()]
        before = self._file.appended
        try:
            self._file.append(*lines)
        except OSError as error:
            lost = list(zip(lines, letters.values(), strict=True))[self._file.appended - before :]
            for line, (values, *_) in lost:
                self._report("writing a dead letter", error, "the record is lost", self._record(line, values))

    def find(self, ids: Collection[str]) -> list[LetterLine]:
        """`LetterStore.find`."""
        self._file.check_owner()
        return [each for each in self._file.letters() if each.id in ids]

    def change(self, changes: Mapping[str, LetterRow | None]) -> bool:
        """`LetterStore.change`."""
        lines = {number: None if each is None else self._line(number, each) for number, each in changes.items()}
        try:
            self._file.change(lines)
        except OSError as error:
            self._report("changing dead letters", error, "they stay as they were for now", None)
            return False
        return True

    def _line(self, number: str, letter: LetterRow) -> LetterLine:
        return letter_line(letter, number, self.task.component)

    def _record(self, line: LetterLine, values: object) -> object:
        """The values of a letter by their names; an element of a step and a batch of columns have none."""
        if line.step or not isinstance(values, list | tuple):
            return values
        return self._named(line.spout, line.stream, values)

    def add_of_step(self, letter: DeadLetter) -> None:
        """Adds the letter of a step, as `add` does, and counts it."""
        self._of_steps[letter.step] += 1
        self.add({f"{self.task.task_id}-{self.task.incarnation}-s{self._of_steps.total()}": letter_row(letter)})

    def take_of_steps(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        """Drops letters of steps; returns the ids that were found, with why they stay: none is emitted again.

        Raises:
            HeronError: when there are no letters, or the file cannot be changed.
        """
        try:
            lines = self.take(ids) if drop else [each for each in self._file.letters() if each.id in ids]
        except OSError as error:
            msg = f"the dead letters of task {self.task.task_id} cannot be changed: {error}"
            raise HeronError(msg) from error
        if not (lines or self._of_steps):
            msg = (
                "it stores no dead letters, because topology.replay.attempts is not set for it, and no step of it has "
                "on_error('dead_letter')"
            )
            raise HeronError(msg)
        return {each.id: "" if drop else _refusal(each) for each in lines}

    def metrics(self) -> list[Metric]:
        """`heron.instance.metrics.task_metrics.MetricSource`: the letters of steps."""
        return [
            Metric(DEAD_LETTER_COUNT, MetricKind.COUNTER, "tuples", count, {"step": step})
            for step, count in self._of_steps.items()
        ]


def _refusal(line: LetterLine) -> str:
    """Why a letter of a task that replays nothing is not emitted again."""
    try:
        values_of(line)
    except SerializationError as error:
        return str(error)
    return "its spout has no topology.replay.attempts any more"

"""The topology that is simulated: words of sentences are counted. What it does to the outside is checked.

`Outside` is the queue in front of the topology and the table behind it. A check that fails is noted at once, with the
time of the simulation, because what happens later may hide it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, ClassVar

from heron.api import Bolt, ITwoPhaseStatefulComponent, Spout, State, StatefulComponent, TopologyContext, Tuple
from heron.api.definition import GroupingDefinition, GroupingKind, TopologyDefinition
from heron_testing.builders import bolt, spout, stream, subscription, topology
from heron_testing.seeded.world import ProcessKilled, World

__all__ = ["Count", "Lines", "Outside", "Sentences", "Split", "Tally", "new_code", "word_count"]

_MODULE = "heron_testing.seeded.workload"
_LONGEST_WAIT_S = 0.2  # of a call of the queue, if sentences come often
_WORDS = ("anchor", "batch", "credit", "drain", "epoch", "fence", "grant", "hold")


class Outside:
    """What the run changes outside of the topology, and what it must be in the end."""

    present: ClassVar[Outside]

    def __init__(self, spouts: int, sentences: int, period_s: float, *, together: int = 4, word_bytes: int = 0) -> None:
        """The first spout task has a queue of `sentences`, of which some come `together` after each period."""
        self._period_s = period_s
        self._together = together
        self.longest_wait_s = max(_LONGEST_WAIT_S, period_s / 10)
        self.word_bytes = word_bytes
        """Words are filled up to this size where sentences are split: a few sentences are then many bytes."""
        self.failed: list[tuple[int, int]] = []
        self.by_task = {task: sentences // (task + 1) for task in range(spouts)}  # so they end one after the other
        self.sentences = {
            (task, number): _words(task, number) for task, count in self.by_task.items() for number in range(count)
        }
        self.acked: set[tuple[int, int]] = set()
        self.counted: Counter[tuple[int, int, int]] = Counter()
        self.prepared: dict[int, dict[int, list[tuple[int, int, int]]]] = {}
        self.problems: list[str] = []

    def prepare(self, task: int, checkpoint: int, words: list[tuple[int, int, int]]) -> None:
        """A task has written words that count when the checkpoint is complete."""
        _check_alive()
        self.prepared.setdefault(task, {})[checkpoint] = words

    def commit(self, task: int, checkpoint: int) -> None:
        """The words up to a checkpoint count."""
        _check_alive()
        prepared = self.prepared.setdefault(task, {})
        for number in sorted(each for each in prepared if each <= checkpoint):
            self.counted.update(prepared.pop(number))

    def discard(self, task: int) -> None:
        """The prepared words of a task do not count."""
        _check_alive()
        self.prepared.pop(task, None)

    def ack(self, sentence: tuple[int, int]) -> None:
        """The queue deletes a sentence: all of its words must be counted."""
        _check_alive()
        missing = [at for at in range(len(self.sentences[sentence])) if not self.counted[(*sentence, at)]]
        if missing:
            self.problems.append(f"at {World.present.now_s:.3f} s: sentence {sentence} is acked before words {missing}")
        self.acked.add(sentence)

    def wait_s(self, number: int) -> float:
        """The time until a sentence comes; not above 0 if it is there."""
        return number // self._together * self._period_s - World.present.now_s

    def check(self, *, exactly: bool) -> list[str]:
        """The problems at the end; with `exactly`, no word may be counted twice, and no sentence may fail."""
        problems = list(self.problems)
        words = {(*each, at) for each, texts in self.sentences.items() for at in range(len(texts))}
        if lost := sorted(words - self.counted.keys()):
            problems.append(f"{len(lost)} of {len(words)} words were never counted, the first is {lost[0]}")
        if strange := sorted(self.counted.keys() - words):
            problems.append(f"{len(strange)} words were counted that nobody sent, the first is {strange[0]}")
        twice = sorted(each for each, times in self.counted.items() if times > 1)
        if exactly and twice:
            problems.append(f"{len(twice)} of {len(words)} words were counted more than once, the first is {twice[0]}")
        if exactly and self.failed:
            problems.append(f"{len(self.failed)} sentences have failed, the first is {self.failed[0]}")
        return problems


def _wait(seconds: float) -> None:
    """As the client of a queue does, which waits for a message."""
    if World.present.current is not None:
        World.present.current.sleep(seconds)


def _check_alive() -> None:
    """A process that was killed changes nothing, whatever its code does while it is unwound."""
    process = World.present.process
    if process is not None and process.killed:
        raise ProcessKilled


def _words(task: int, number: int) -> tuple[str, ...]:
    return tuple(_WORDS[(number * 5 + task + at * at) % len(_WORDS)] for at in range(1 + (number + task) % 4))


class Sentences(Spout):
    """Sends each sentence of its queue when it is due, and again when it failed."""

    outputs = ("task", "number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The queue delivers again what was not acked."""
        del config
        self.outside = Outside.present
        self.index = context.get_component_tasks(context.get_component_id()).index(context.get_task_id())
        count = self.outside.by_task[self.index]
        self.queue = deque(each for each in range(count) if (self.index, each) not in self.outside.acked)
        self.open: set[int] = set()
        self.ended = False

    def next_tuple(self) -> None:
        """Sends the next sentence, if one is due."""
        queue = self.queue
        if not queue:
            if not self.open and not self.ended:
                self.ended = True
                self.end()
            elif not self.ended:
                _wait(self.outside.longest_wait_s)
            return
        if (wait_s := self.outside.wait_s(queue[0])) > 0:
            _wait(min(wait_s, self.outside.longest_wait_s))
            return
        number = queue.popleft()
        self.open.add(number)
        self.emit([self.index, number, " ".join(self.outside.sentences[self.index, number])], tup_id=number)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Deletes the sentence."""
        self.open.discard(tup_id)
        self.outside.ack((self.index, tup_id))

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Sends the sentence again."""
        self.open.discard(tup_id)
        self.outside.failed.append((self.index, tup_id))
        self.queue.appendleft(tup_id)


class Split(Bolt):
    """Sends the words of a sentence."""

    outputs = ("task", "number", "at", "word")

    def process(self, tup: Tuple) -> None:
        """Sends each word with its place."""
        task, number, text = tup.values
        size_bytes = Outside.present.word_bytes
        for at, word in enumerate(text.split()):
            self.emit([task, number, at, word.ljust(size_bytes, "-")], anchors=[tup])
        self.ack(tup)


class Count(Bolt):
    """Counts words in a table outside."""

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        task, number, at, _ = tup.values
        _check_alive()
        Outside.present.counted[task, number, at] += 1
        self.ack(tup)


class Lines(StatefulComponent, Spout):
    """Sends each sentence once; its state is the number of the next one."""

    outputs = ("task", "number", "text")

    def init_state(self, state: State) -> None:
        """Goes on where the checkpoint was."""
        self.state = state
        self.next = state.get("next") or 0

    def pre_save(self, checkpoint_id: str) -> None:
        """Saves the position."""
        del checkpoint_id
        self.state.put("next", self.next)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Finds its queue."""
        del config
        self.outside = Outside.present
        self.index = context.get_component_tasks(context.get_component_id()).index(context.get_task_id())
        self.ended = False

    def next_tuple(self) -> None:
        """Sends the next sentence, if it is due."""
        if self.next == self.outside.by_task[self.index]:
            if not self.ended:
                self.ended = True
                self.end()
        elif (wait_s := self.outside.wait_s(self.next)) > 0:
            _wait(min(wait_s, self.outside.longest_wait_s))
        else:
            self.emit([self.index, self.next, " ".join(self.outside.sentences[self.index, self.next])])
            self.next += 1


class Tally(ITwoPhaseStatefulComponent, Bolt):
    """Counts words in a table outside, with the checkpoints, and in its state."""

    def init_state(self, state: State) -> None:
        """Goes on with the number of words at the checkpoint."""
        self.state = state
        self.words = state.get("words") or 0
        self.fresh: list[tuple[int, int, int]] = []

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Finds its part of the table; while an update replaces a task, two tasks have its index."""
        del config
        self.outside = Outside.present
        self.task = context.get_task_id()

    def process(self, tup: Tuple) -> None:
        """Counts a word."""
        task, number, at, _ = tup.values
        self.fresh.append((task, number, at))
        self.words += 1

    def pre_save(self, checkpoint_id: str) -> None:
        """Writes what is new."""
        self.state.put("words", self.words)
        self.outside.prepare(self.task, int(checkpoint_id), self.fresh)
        self.fresh = []

    def post_save(self, checkpoint_id: str) -> None:
        """Commits what it has written."""
        self.outside.commit(self.task, int(checkpoint_id))

    def pre_restore(self, checkpoint_id: str) -> None:
        """Commits what belongs to the checkpoint, and discards the rest."""
        if checkpoint_id:
            self.outside.commit(self.task, int(checkpoint_id))
        self.outside.discard(self.task)


class Split2(Split):
    """New code of `Split`."""


class Count2(Count):
    """New code of `Count`."""


class Lines2(Lines):
    """New code of `Lines`."""


class Tally2(Tally):
    """New code of `Tally`."""


class BrokenSplit(Split):
    """New code that does not start."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Fails."""
        message = "this code does not start"
        raise ValueError(message)


class BrokenTally(Tally):
    """New code that cannot read what the former code has saved; it starts without it."""

    def init_state(self, state: State) -> None:
        """Fails if there is a state."""
        super().init_state(state)
        if self.words:
            message = "this code cannot read the state"
            raise ValueError(message)


def new_code(what: str, *, with_state: bool) -> type:
    """The class of new code for a component, or ``broken`` for code that fails."""
    classes: dict[str, type] = {"split": Split2, "sentences": Lines2}
    classes |= {"count": Tally2, "broken": BrokenTally} if with_state else {"count": Count2, "broken": BrokenSplit}
    return classes[what]


def word_count(config: dict[str, object], *, with_state: bool) -> TopologyDefinition:
    """The topology, with two tasks of each component."""
    by_word = GroupingDefinition(GroupingKind.FIELDS, ("word",))
    source, sink = ("Lines", "Tally") if with_state else ("Sentences", "Count")
    return topology(
        spout("sentences", stream("task", "number", "text"), parallelism=2, entry=f"{_MODULE}:{source}"),
        bolt(
            "split",
            subscription("sentences"),
            outputs=(stream("task", "number", "at", "word"),),
            parallelism=2,
            entry=f"{_MODULE}:Split",
        ),
        bolt("count", subscription("split", by_word), parallelism=2, entry=f"{_MODULE}:{sink}"),
        name="words",
        config=config,
    )

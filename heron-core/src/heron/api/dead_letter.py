"""Dead letters: records that were given up. A spout emitted them, and they failed once more than
`topology.replay.attempts` allows; or a component handed them over in a `FailedRecordError`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from heron.api.definition import DEAD_LETTERS, ComponentDefinition, ComponentKind, StreamDefinition
from heron.api.tuple import Tuple
from heron.errors import UserCodeError

__all__ = ["DEAD_LETTER_STREAM", "DeadLetter", "FailedRecordError", "with_dead_letters"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was given up. A bolt that subscribes to ``spout["dead_letters"]`` receives one in each tuple.

        class Keep(Bolt):
            def process(self, tup):
                letter = DeadLetter.of(tup)
                self.log(f"{letter.values} failed in {letter.component}: {letter.error}")
                self.ack(tup)

    Attributes:
        values: what the spout emitted, in the order of the fields of `stream`; for a batch of columns, that batch.
        stream: the stream of the spout.
        tup_id: the id that the spout gave, such as a position in its source.
        failures: how often it failed or expired; 1 for a letter of a step.
        outcome: ``failed`` if a task failed it, ``expired`` if its tree was not complete in time.
        component: the component that failed it last; empty if its tree expired.
        task_id: the task that failed it last; 0 if its tree expired.
        error: the class and the text of the exception; empty if the component called `fail`.
        trace: the traceback, the last 2,500 characters; empty without an exception.
        emitted_s: when it was emitted first, in seconds since the epoch.
        failed_s: when it failed last, in seconds since the epoch.
        step: the name of the step of a pipeline that failed it; otherwise empty. Then `stream` is empty, `component` is
            where the letter was written, and `tup_id` is the place in the source, or None where it is not known.
        step_number: the number of this step in its pipeline, from 0; -1 without a step.
    """

    values: object
    stream: str
    tup_id: object
    failures: int
    outcome: str
    component: str
    task_id: int
    error: str
    trace: str
    emitted_s: float
    failed_s: float
    step: str = ""
    step_number: int = -1

    @classmethod
    def of(cls, tup: Tuple) -> DeadLetter:
        """Return the letter in a tuple of the stream ``dead_letters``.

        Raises:
            TypeError: when the tuple is of another stream.
        """
        return cls(*tup.values)


class FailedRecordError(UserCodeError):
    """A failure of records that have a rule of their own. Raise it, or pass it to `report_error`.

    Attributes:
        stops: whether the task ends because of it; None for what `topology.on.error` says.
        letters: records that become dead letters of the task. The engine fills in component and task.
    """

    stops: bool | None = None
    letters: tuple[DeadLetter, ...] = ()

    @staticmethod
    def ends_task(error: BaseException, default: bool) -> bool:
        """Return whether a task ends because of an error; `default` is what `topology.on.error` says."""
        own = error.stops if isinstance(error, FailedRecordError) else None
        return default if own is None else own


DEAD_LETTER_STREAM = StreamDefinition(DEAD_LETTERS, tuple(each.name for each in fields(DeadLetter)))
"""The stream that `with_dead_letters` adds; its fields are the attributes of `DeadLetter`."""


def with_dead_letters(spout: ComponentDefinition) -> ComponentDefinition:
    """Return the spout with the stream of its dead letters, unless it declares one of that name itself."""
    if spout.kind is not ComponentKind.SPOUT or spout.output(DEAD_LETTERS) is not None:
        return spout
    return replace(spout, outputs=(*spout.outputs, DEAD_LETTER_STREAM))

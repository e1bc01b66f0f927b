"""Output streams, and the groupings that divide their tuples among the tasks of a consumer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from heron.api.config import json_object
from heron.api.definition import DEFAULT_STREAM, GroupingDefinition, GroupingKind, StreamDefinition
from heron.api.names import checked_fields, checked_name, entry_of, is_a, parsed_entry
from heron.author_text import short_text
from heron.errors import TopologyError

if TYPE_CHECKING:  # the context imports this module
    from pyarrow import RecordBatch

    from heron.api.context import TopologyContext

__all__ = ["Grouping", "ICustomGrouping", "Stream", "merged_outputs"]


class Stream:
    """A named output stream: ``outputs = ["word", Stream(fields=["line", "reason"], name="error")]``.

    Args:
        fields: the names of the fields, in the order of the emitted values.
        name: the name of the stream.
        direct: whether each emit names the receiving task; consumers must then use ``Grouping.DIRECT``.

    Raises:
        TopologyError: when an argument has the wrong type, a name is empty, or a field occurs twice.
    """

    __slots__ = ("direct", "fields", "stream_id")

    DEFAULT_STREAM_ID = DEFAULT_STREAM

    def __init__(self, fields: Sequence[str] | None = None, name: str = DEFAULT_STREAM, direct: bool = False) -> None:
        if fields is not None and not isinstance(fields, list | tuple):
            msg = f"stream {short_text(name)}: fields {short_text(fields)} is not a list or tuple; give ['field', ...]"
            raise TopologyError(msg)
        if not is_a(direct, bool):
            msg = f"stream {short_text(name)}: direct is {short_text(direct)}; give True or False"
            raise TopologyError(msg)
        self.stream_id = checked_name(name, "stream")
        self.fields = checked_fields(fields or (), f"stream {short_text(name)}")
        self.direct = direct

    def __repr__(self) -> str:
        return f"Stream(fields={list(self.fields)!r}, name={self.stream_id!r}, direct={self.direct!r})"


def merged_outputs(outputs: Sequence[str | Stream], place: str) -> tuple[StreamDefinition, ...]:
    """Return one definition for each declared stream; plain strings are fields of the default stream.

    Raises:
        TopologyError: when an output is neither a string nor a `Stream`, or a stream is declared twice.
    """
    if not isinstance(outputs, list | tuple):
        msg = f"{place}: outputs {short_text(outputs)} is not a list or tuple; give ['field', Stream(...), ...]"
        raise TopologyError(msg)
    fields_by_stream: dict[str, list[str]] = {}
    for output in outputs:
        if isinstance(output, str):
            fields_by_stream.setdefault(DEFAULT_STREAM, []).append(output)
        elif not isinstance(output, Stream):
            msg = f"{place}: the output {short_text(output)} is neither a field name nor a Stream; give one of them"
            raise TopologyError(msg)
        elif output.stream_id in fields_by_stream and output.stream_id != DEFAULT_STREAM:
            msg = f"{place}: the stream {output.stream_id!r} is declared twice; declare it once"
            raise TopologyError(msg)
        else:
            fields_by_stream.setdefault(output.stream_id, []).extend(output.fields)
    return tuple(
        StreamDefinition(name, checked_fields(fields, f"{place}, stream {name!r}"))
        for name, fields in fields_by_stream.items()
    )


class ICustomGrouping(ABC):
    """A grouping that authors write. An object of it lives in each emitting task and chooses the receiving tasks."""

    @abstractmethod
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Receive the tasks of the consumer.

        Called after the `initialize` of the emitting component, and again when the tasks of the consumer change.

        Args:
            context: the context of the emitting task.
            component: the name of the emitting component.
            stream: the name of the emitted stream.
            target_tasks: the task ids of the consumer, by task index.
        """

    @abstractmethod
    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return the tasks that receive a tuple with these values: any number of ids out of `target_tasks`.

        Called from the emitting task's thread for each tuple.
        """

    def choose_columns(self, batch: RecordBatch) -> Sequence[int] | None:
        """Return the task of each row of a batch that was emitted as columns: a sequence or NumPy array of task ids.

        None, which this base class returns, has `choose_tasks` called for each row.
        """
        return None


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the tuples of a stream are divided among the tasks of a consumer.

    | grouping | receiving task |
    |---|---|
    | `SHUFFLE`, `NONE` | each task in turn |
    | `ALL` | every task |
    | `LOWEST`, `GLOBAL` | the task with index 0 |
    | `LOCAL_OR_SHUFFLE` | a task in the emitter's container if there is one, else as `SHUFFLE` |
    | `DIRECT` | the task that the emit names with `direct_task` |
    | `fields`, `PARTIAL_KEY` | chosen by the values of some fields |
    | `custom` | chosen by an `ICustomGrouping` |

    Attributes:
        definition: the grouping as data.
        live: the object that was given to `custom`, else None.
    """

    definition: GroupingDefinition
    live: ICustomGrouping | None = field(default=None, compare=False)

    SHUFFLE: ClassVar[Grouping]
    ALL: ClassVar[Grouping]
    LOWEST: ClassVar[Grouping]
    GLOBAL: ClassVar[Grouping]
    NONE: ClassVar[Grouping]
    DIRECT: ClassVar[Grouping]
    LOCAL_OR_SHUFFLE: ClassVar[Grouping]

    @classmethod
    def fields(cls, *fields: str | list[str] | tuple[str, ...]) -> Grouping:
        """Send tuples with equal values in these fields to the same task.

        Raises:
            TopologyError: when no field is given, or a field is not a string.
        """
        return cls._by_fields(GroupingKind.FIELDS, "Grouping.fields", fields)

    @classmethod
    def PARTIAL_KEY(cls, *fields: str | list[str] | tuple[str, ...]) -> Grouping:
        """Like `fields`, but with two candidate tasks for each key; the emitter takes the less loaded one.

        This balances frequent keys. In return, each key has two partial results. Source: Nasir et al., "The Power of
        Both Choices" (ICDE 2015).

        Raises:
            TopologyError: when no field is given, or a field is not a string.
        """
        return cls._by_fields(GroupingKind.PARTIAL_KEY, "Grouping.PARTIAL_KEY", fields)

    @classmethod
    def custom(
        cls,
        customgrouper: ICustomGrouping | type[ICustomGrouping] | str,
        arguments: Mapping[str, object] | None = None,
    ) -> Grouping:
        """Let a class of the author choose the tasks.

        Args:
            customgrouper: an object, a class, or the name of a class as ``module.Class``, ``module:Class`` or, for a
                class of the file that is run, ``Class``.
            arguments: JSON keyword arguments for the constructor of the class.

        Raises:
            TopologyError: when `customgrouper` is none of these, is an object and `arguments` are given, or these are
                not a dict.
            ConfigError: when an argument is not JSON.
        """
        place = "Grouping.custom"
        if arguments is not None and not is_a(arguments, Mapping):
            msg = f"{place}: arguments {short_text(arguments, 60)} is not a dict; give {{'argument': value}}"
            raise TopologyError(msg)
        values = json_object(arguments or {}, f"{place}: arguments")
        if isinstance(customgrouper, ICustomGrouping):
            if values:
                msg = f"{place}: an object takes no arguments; give its class instead"
                raise TopologyError(msg)
            return cls(GroupingDefinition(GroupingKind.CUSTOM), customgrouper)
        if isinstance(customgrouper, str):
            entry = parsed_entry(customgrouper, place)
        elif is_a(customgrouper, type) and issubclass(customgrouper, ICustomGrouping):
            entry = entry_of(customgrouper, place)
        else:
            msg = (
                f"{place}: {short_text(customgrouper)} is not an ICustomGrouping; give an object or "
                "class derived from it, or "
                "'module:Class'"
            )
            raise TopologyError(msg)
        return cls(GroupingDefinition(GroupingKind.CUSTOM, entry=entry, arguments=values))

    @classmethod
    def custom_serialized(cls, serialized: bytes, is_java: bool = True) -> NoReturn:
        """Refuse: plans hold no serialised objects.

        Raises:
            TopologyError: always.
        """
        msg = (
            f"Grouping.custom_serialized: {len(serialized)} bytes of a serialised object are not supported, as plans "
            "hold no objects; use Grouping.custom"
        )
        raise TopologyError(msg)

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: object) -> NoReturn:
        """Refuse: Java classes cannot run here.

        Raises:
            TopologyError: always.
        """
        msg = (
            f"Grouping.custom_object: the Java class {short_text(java_class_name)} is not supported; use "
            "Grouping.custom"
        )
        raise TopologyError(msg)

    @classmethod
    def is_grouping_sane(cls, gtype: object) -> bool:
        """Return whether `gtype` is a grouping."""
        return isinstance(gtype, cls)

    @classmethod
    def _by_fields(cls, kind: GroupingKind, place: str, fields: tuple[object, ...]) -> Grouping:
        names = fields[0] if len(fields) == 1 and isinstance(fields[0], list | tuple) else fields
        if not names:
            msg = f"{place}: no field is given; give at least one field of the stream"
            raise TopologyError(msg)
        return cls(GroupingDefinition(kind, checked_fields(names, place)))


Grouping.SHUFFLE = Grouping(GroupingDefinition(GroupingKind.SHUFFLE))
Grouping.ALL = Grouping(GroupingDefinition(GroupingKind.ALL))
Grouping.LOWEST = Grouping(GroupingDefinition(GroupingKind.LOWEST))
Grouping.GLOBAL = Grouping.LOWEST
Grouping.NONE = Grouping(GroupingDefinition(GroupingKind.NONE))
Grouping.DIRECT = Grouping(GroupingDefinition(GroupingKind.DIRECT))
Grouping.LOCAL_OR_SHUFFLE = Grouping(GroupingDefinition(GroupingKind.LOCAL_OR_SHUFFLE))

"""How the tuples of a stream are divided among the tasks of a consumer, as authors write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

from heron.api.author_name import checked_fields, is_a
from heron.api.config import json_object
from heron.api.custom_grouping import ICustomGrouping
from heron.api.definition import GroupingDefinition, GroupingKind
from heron.api.entry import entry_of, parsed_entry
from heron.errors import TopologyError

__all__ = ["Grouping"]


@dataclass(frozen=True, slots=True)
class Grouping:
    """A grouping: one of the constants, or made by `fields`, `PARTIAL_KEY` or `custom`.

    SHUFFLE deals tuples to the tasks in turn; ALL sends each tuple to every task; LOWEST (GLOBAL) to the task
    with the smallest id; NONE is SHUFFLE for authors who do not mind; LOCAL_OR_SHUFFLE stays in the emitter's
    container where a task of the consumer is there; DIRECT leaves the choice to each emit's `direct_task`.

    Attributes:
        definition: the grouping as data.
        live: the author's own object, where `custom` was given one.
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
        """Tuples with equal values in these fields reach the same task.

        Raises:
            TopologyError: when no field is given, or one is no string.
        """
        return cls._by_fields(GroupingKind.FIELDS, "Grouping.fields", fields)

    @classmethod
    def PARTIAL_KEY(cls, *fields: str | list[str] | tuple[str, ...]) -> Grouping:
        """Like `fields`, but each key has two tasks, of which the less loaded is taken: evens out frequent
        keys.

        Consumers hold two partial results per key. After Nasir et al., "The Power of Both Choices" (ICDE
        2015).

        Raises:
            TopologyError: when no field is given, or one is no string.
        """
        return cls._by_fields(GroupingKind.PARTIAL_KEY, "Grouping.PARTIAL_KEY", fields)

    @classmethod
    def custom(
        cls,
        customgrouper: ICustomGrouping | type[ICustomGrouping] | str,
        arguments: Mapping[str, object] | None = None,
    ) -> Grouping:
        """The author's own choice of tasks.

        Args:
            customgrouper: an object (each instance loads the author's file again and takes the object that
                stands there), a class, or a class's name as ``module.Class`` or ``module:Class``.
            arguments: JSON keyword arguments for the constructor of the class.

        Raises:
            TopologyError: when it is none of these, or an object is given together with arguments.
            ConfigError: when an argument is not JSON.
        """
        place = "Grouping.custom"
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
                f"{place}: {customgrouper!r} is no ICustomGrouping; give an object or class derived from it, or "
                "'module:Class'"
            )
            raise TopologyError(msg)
        return cls(GroupingDefinition(GroupingKind.CUSTOM, entry=entry, arguments=values))

    @classmethod
    def custom_serialized(cls, serialized: bytes, is_java: bool = True) -> NoReturn:
        """Refused: plans hold no serialised objects.

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
        """Refused: there is no Java here.

        Raises:
            TopologyError: always.
        """
        msg = f"Grouping.custom_object: the Java class {java_class_name!r} is not supported; use Grouping.custom"
        raise TopologyError(msg)

    @classmethod
    def is_grouping_sane(cls, gtype: object) -> bool:
        """Whether this is a grouping."""
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

"""The entries of a call, as three lists.

A tuple for each entry would make Python look for garbage more often, which took longer than the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, overload

__all__ = ["Entries", "Entry"]

Entry: TypeAlias = tuple[str, int, bytes]
"""Category, partition of the category, message."""


class Entries(Sequence[Entry]):
    """Entries in their order.

    Attributes:
        categories: of each entry.
        partitions: of each entry.
        messages: of each entry.
    """

    __slots__ = ("categories", "messages", "partitions")

    def __init__(self, categories: list[str], partitions: list[int], messages: list[bytes]) -> None:
        self.categories, self.partitions, self.messages = categories, partitions, messages

    @classmethod
    def of(cls, entries: Iterable[Entry] = ()) -> Entries:
        """The same entries."""
        found = cls([], [], [])
        for category, partition, message in entries:
            found.categories.append(category)
            found.partitions.append(partition)
            found.messages.append(message)
        return found

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Entry]:
        return zip(self.categories, self.partitions, self.messages, strict=True)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Entries: ...
    def __getitem__(self, at: int | slice) -> Entry | Entries:
        if isinstance(at, slice):
            return Entries(self.categories[at], self.partitions[at], self.messages[at])
        return self.categories[at], self.partitions[at], self.messages[at]

"""Whether sizes fit into rooms, each a pair of cores and MiB: exactly, as far as that can be found out soon. Pure."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fits"]

Size = tuple[int, int]

_TRIES = 5_000  # a tenth of a second; beyond them a job is not refused on a guess
_MANY = 200  # sizes, for which nobody tries all ways


def fits(sizes: Sequence[Size], rooms: Sequence[Size]) -> bool:
    """False only when there is no way to put them all in."""
    if any(sum(each[what] for each in sizes) > sum(each[what] for each in rooms) for what in (0, 1)):
        return False
    if not all(any(room[0] >= each[0] and room[1] >= each[1] for room in rooms) for each in set(sizes)):
        return False
    if len(sizes) > _MANY:
        return True
    search = _Search(sorted(sizes, key=lambda each: each[0] * each[1], reverse=True), list(rooms))
    return search.place(0) or not search.tries


class _Search:
    """Puts one size after another, the largest first, into each room in turn that differs from those tried before."""

    def __init__(self, sizes: list[Size], rooms: list[Size]) -> None:
        self.tries = _TRIES
        self._sizes = sizes
        self._rooms = rooms

    def place(self, index: int) -> bool:
        """Whether this size and all behind it find room."""
        if index == len(self._sizes):
            return True
        cores, memory = self._sizes[index]
        for room in sorted(set(self._rooms)):
            if room[0] < cores or room[1] < memory:
                continue
            if not self.tries:
                return False
            self.tries -= 1
            at = self._rooms.index(room)
            self._rooms[at] = (room[0] - cores, room[1] - memory)
            if self.place(index + 1):
                return True
            self._rooms[at] = room
        return False

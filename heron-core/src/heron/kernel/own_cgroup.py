"""The cgroup of this process, version 2 or 1, as the kernel's files show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["MemoryKills", "OwnCgroup", "keyed_numbers"]

_KIB = 1024


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """The number of processes that the kernel has killed for memory: of the cgroup, or `of_host`."""

    number: int
    of_host: bool = False


class OwnCgroup:
    """Reads the files below `root`, which is ``/`` except in tests. A file that is missing gives None."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._hierarchy = root / "sys/fs/cgroup"

    def memory_used_bytes(self) -> float | None:
        """The memory of all processes of the cgroup."""
        folder, first = self._memory()
        return _number(folder / ("memory.usage_in_bytes" if first else "memory.current"))

    def memory_limit_bytes(self) -> float | None:
        """The limit of that memory; None where it is not below the memory of the host, which is no limit then."""
        folder, first = self._memory()
        limit = _number(folder / ("memory.limit_in_bytes" if first else "memory.max"))
        total = keyed_numbers(self._proc / "meminfo").get("MemTotal:")
        return limit if limit is not None and total and limit < total[0] * _KIB else None

    def memory_kills(self) -> MemoryKills | None:
        """The processes of the cgroup that the kernel has killed for memory; where it has no count, of the host."""
        folder, first = self._memory()
        own = folder / ("memory.oom_control" if first else "memory.events")
        for place, of_host in ((own, False), (self._proc / "vmstat", True)):
            if number := keyed_numbers(place).get("oom_kill"):
                return MemoryKills(int(number[0]), of_host)
        return None

    def processor_stat(self) -> dict[str, list[float]]:
        """The statistics of the limit of processors."""
        unified, by_controller = self._folders()
        return keyed_numbers(by_controller.get("cpu", unified) / "cpu.stat")

    def _memory(self) -> tuple[Path, bool]:
        """The folder with the memory, and whether it is of version 1."""
        unified, by_controller = self._folders()
        memory = by_controller.get("memory")
        return (unified, False) if memory is None else (memory, True)

    def _folders(self) -> tuple[Path, dict[str, Path]]:
        """The folder in the hierarchy of version 2, and those in the hierarchies of version 1 by controller."""
        unified, by_controller = self._hierarchy, {}
        for line in _text(self._proc / "self/cgroup").splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if not controllers:
                unified = _inside(self._hierarchy, path)
            for each in filter(None, controllers.split(",")):
                if (self._hierarchy / each).is_dir():
                    by_controller[each] = _inside(self._hierarchy / each, path)
        return unified, by_controller


def keyed_numbers(path: Path) -> dict[str, list[float]]:
    """The numbers behind the first word of each line of a file, by that word; lines without any are left out."""
    found: dict[str, list[float]] = {}
    for line in _text(path).splitlines():
        name, _, rest = line.partition(" ")
        numbers = [float(word) for word in rest.split() if word.isdigit()]
        if numbers:
            found[name] = numbers
    return found


def _inside(hierarchy: Path, path: str) -> Path:
    """The folder of a cgroup; the root of the hierarchy where a container sees only its own cgroup there."""
    folder = hierarchy / path.lstrip("/")
    return folder if folder.is_dir() else hierarchy


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> float | None:
    """The number in a file; infinite for ``max``."""
    text = _text(path).strip()
    if text == "max":
        return float("inf")
    return float(text) if text.isdigit() else None

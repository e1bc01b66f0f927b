"""The logs of a container on a worker: in a folder of its own, brought to the driver, and shown on Spark's pages."""

from __future__ import annotations

import shutil
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.private_files import make_private_dir
from heron_scheduler_spark.log_echo import LogEcho
from heron_scheduler_spark.log_shipper import LogShipper
from heron_scheduler_spark.task_link import TaskLink
from heron_scheduler_spark.task_words import LogText

__all__ = ["ContainerLogs"]

_SHIP_S = 0.5
_STDERR = 2


class ContainerLogs:
    """Used from the thread of the link, which it never holds up."""

    def __init__(self, folder: Path, title: str, link: TaskLink) -> None:
        """Makes the folder anew; `title` is what Spark's pages call the container. Raises OSError or HeronError."""
        shutil.rmtree(folder, ignore_errors=True)
        make_private_dir(folder)
        self._folder = folder
        self._link = link
        self._echo = LogEcho(_STDERR, title)
        self._shipper = LogShipper(folder, self._take)
        self._ship_at_s = 0.0

    def look(self) -> None:
        """Passes on what has come; not more often than twice a second."""
        if monotonic_s() >= self._ship_at_s:
            self._ship_at_s = monotonic_s() + _SHIP_S
            self._shipper.ship()

    def close(self) -> None:
        """Passes on the rest, and removes the folder."""
        self._shipper.ship(final=True)
        self._echo.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, name: str, text: str) -> None:
        self._link.say(LogText(name, text))
        self._echo.take(Path(name).stem, text)

"""What is the same for spouts and bolts that speak Storm's protocol: its start, logs, errors, metrics, printed text."""

from __future__ import annotations

import shutil
from pathlib import Path

from heron.api import TopologyContext
from heron.author_text import short_text
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo
from heron_runtime_multilang.child_message import ChildMessage
from heron_runtime_multilang.child_metrics import ChildMetrics
from heron_runtime_multilang.child_settings import ChildSettings
from heron_runtime_multilang.framing import ChildOutput, Framing, framing_of
from heron_runtime_multilang.pid_folder import make_pid_folder
from heron_runtime_multilang.printed_lines import PrintedLines
from heron_runtime_multilang.setup_message import setup_message

__all__ = ["MultilangProtocol"]

_HEARTBEAT: dict[str, object] = {"id": "0", "comp": None, "stream": "__heartbeat", "task": -1, "tuple": []}
_LEVELS = ("trace", "debug", "info", "warn", "error")


class MultilangProtocol:
    """Storm's protocol with the children of one task. `framing` is that of the present child."""

    def __init__(self, settings: ChildSettings, context: TopologyContext) -> None:
        self.framing: Framing = framing_of(settings.framing, settings.message_bytes)
        self.heartbeat = self.framing.encode(_HEARTBEAT)
        self._settings = settings
        self._context = context
        self._metrics = ChildMetrics(context)
        self._pid_folder: Path | None = None
        self._printed: PrintedLines | None = None
        self._has_printed = False

    def begin(self) -> tuple[Framing, bytes]:
        """`ChildProtocol.begin`: the setup message."""
        self.framing = framing_of(self._settings.framing, self._settings.message_bytes)
        self._pid_folder = make_pid_folder()
        self._printed = None
        return self.framing, self.framing.encode(setup_message(self._context, str(self._pid_folder)))

    def is_ready(self, output: ChildOutput) -> bool:
        """`ChildProtocol.is_ready`: the child has sent its process id."""
        return isinstance(output, ChildMessage) and output.pid is not None

    def ended(self) -> None:
        """`ChildProtocol.ended`."""
        if self._pid_folder is not None:
            shutil.rmtree(self._pid_folder, ignore_errors=True)
            self._pid_folder = None

    def carry_out(self, output: ChildOutput, io: ChildIo[ChildOutput], host: ChildHost[ChildOutput]) -> None:
        """`ChildProtocol.carry_out`; an unknown command is a fault of the child."""
        user = host.user
        if isinstance(output, str):
            self._print(output, io, host)
            return
        if self._pid_folder is not None and (self._pid_folder / str(io.pid)).exists():
            self.ended()
        command = output.command
        if command == "log":
            level = output.level if output.level is not None else 2
            user.log(f"[child {io.pid}] {output.msg}", _LEVELS[max(0, min(level, 4))])
        elif command == "error" and host.is_stopping:  # many libraries report the end of their stdin
            user.log(f"[child {io.pid}] {output.msg}", "debug")
        elif command == "error":
            text = str(output.msg)
            user.report_error(host.error(f"reported: {text}", text, io.pid))
        elif command == "metrics":
            if problem := self._metrics.update(output.name, output.params):
                user.report_error(host.error(f"sent metrics that cannot be used: {problem}", problem, io.pid))
        elif command != "sync" and output.pid is None:
            io.kill(f"it sent the command {short_text(command)}, which is unknown here")

    def reply(self, io: ChildIo[ChildOutput], host: ChildHost[ChildOutput], task_ids: list[int] | None) -> None:
        """Send the ids of the receiving tasks to a child that waits for them."""
        host.reply(io, self.framing.encode(task_ids or []))

    def _print(self, text: str, io: ChildIo[ChildOutput], host: ChildHost[ChildOutput]) -> None:
        if not self._has_printed:
            self._has_printed = True
            host.user.log(f"child {io.pid} prints on stdout, where its messages are; print on stderr, or log", "warn")
        if self._printed is None:
            self._printed = PrintedLines(io.pid)
        self._printed.add(f"{text.rstrip()}\n".encode(errors="replace"))

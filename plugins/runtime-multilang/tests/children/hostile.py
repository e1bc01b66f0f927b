"""A bolt that doubles numbers, and misbehaves once: ``hostile.py HOW MARKER``.

It does so at the number 20, or, if HOW is a key of AT_THE_END, when its input has ended.

It needs no library, so it shows the whole protocol. MARKER is a file that tells the next process to behave.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

AT = 20


def read() -> Any:  # noqa: ANN401  # any JSON
    """Return the next message; end with the input."""
    lines: list[str] = []
    for line in sys.stdin:
        if line == "end\n":
            return json.loads("".join(lines))
        lines.append(line)
    AT_THE_END.get(sys.argv[1], sys.exit)()
    sys.exit(0)


def send(message: dict[str, object]) -> None:
    """Send a message."""
    write(json.dumps(message) + "\nend\n")


def write(text: str) -> None:
    """Write to the channel, whatever it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def sleep() -> NoReturn:
    """Hang."""
    while True:
        signal.pause()


def exit_with_a_reason() -> NoReturn:
    """As an uncaught exception does."""
    sys.stderr.write("first\nthe reason\n")
    sys.stderr.flush()
    os._exit(3)


def exit_in_a_message() -> NoReturn:
    """As a full disk or a kill does."""
    write('{"command":"emit","tuple":[1')
    os._exit(4)


def write_without_end() -> NoReturn:
    """A hundred megabytes without an end."""
    while True:
        write("x" * 1_000_000)


def close_stdout() -> NoReturn:
    """The channel is closed, and the process lives."""
    os.close(1)
    sleep()


def close_stdin() -> NoReturn:
    """As a program that wants no more input."""
    os.close(0)
    sleep()


def exit_after_the_rest() -> NoReturn:
    """Takes all tuples, and settles none."""
    while read()["stream"] != "__heartbeat":
        pass
    exit_with_a_reason()


def send_metrics() -> None:
    """Five kinds of values, one of them wrong."""
    for name, value in (("seen", None), ("seen", 4), ("kinds", {"a": 2}), ("kinds", 1), ("level", "high")):
        send({"command": "metrics", "name": name, "params": value})


WAYS: dict[str, Callable[[], object]] = {
    "exit": exit_with_a_reason,
    "exit 0": lambda: os._exit(0),
    "signal": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": sleep,
    "half": exit_in_a_message,
    "endless": write_without_end,
    "close": close_stdout,
    "close stdin": close_stdin,
    "rest": exit_after_the_rest,
    "garbled": lambda: write('{"command":"emit","tuple":[1\nend\n'),
    "nan": lambda: send({"command": "emit", "tuple": [float("nan"), 1]}),
    "anchor": lambda: send({"command": "emit", "tuple": [1, 1], "anchors": ["77777"]}),
    "command": lambda: send({"command": "dance"}),
    "fields": lambda: send({"command": "emit", "tuple": [1], "need_task_ids": False}),
    "stderr": lambda: sys.stderr.write("noise\n" * 1_000_000),
    "stdout": lambda: write("noise\n" * 10_000),
    "print": lambda: write("{'not': json} "),
    "error": lambda: send({"command": "error", "msg": "a wrong record"}),
    "metrics": send_metrics,
    "log": lambda: send({"command": "log", "msg": "told", "level": 3}),
}

AT_THE_END: dict[str, Callable[[], object]] = {
    "outlives": sleep,
    "exits": exit_with_a_reason,
    "is killed": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "says bye": lambda: write("bye\n"),
}


def main() -> None:
    """Run until the input ends."""
    how, marker = sys.argv[1], Path(sys.argv[2])
    setup = read()
    (Path(setup["pidDir"]) / str(os.getpid())).touch()
    send({"pid": os.getpid()})
    forgotten: dict[int, str] = {}  # the id of a number that was not settled
    while True:
        message = read()
        if message["stream"] == "__heartbeat":
            send({"command": "sync"})
            continue
        (number,) = message["tuple"]
        if number == AT and not marker.exists():
            marker.touch()
            WAYS.get(how, int)()
        values = [number, number * 2]
        anchors = [message["id"], *([forgotten[number]] if number in forgotten else [])]
        send({"command": "emit", "tuple": values, "anchors": anchors, "need_task_ids": False})
        if how == "settles none":
            continue
        if how == "forgets" and number % 6 == 0 and number not in forgotten:
            forgotten[number] = message["id"]
            continue
        send({"command": "ack", "id": message["id"]})


if __name__ == "__main__":
    main()

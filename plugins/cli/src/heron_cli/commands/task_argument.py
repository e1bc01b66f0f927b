"""The argument TASK of commands about one task: its number, or COMPONENT/NUMBER as `heron status` shows it."""

from __future__ import annotations

from typing import NamedTuple

import click

__all__ = ["TaskChoice", "task_argument"]

_TASKS = 1 << 32  # ids are 32 bits on the wire


class TaskChoice(NamedTuple):
    """A task; `component` is "" if only its number was given."""

    component: str
    task_id: int


def _choice(_context: click.Context, _parameter: click.Parameter, text: str) -> TaskChoice:
    component, slash, number = text.rpartition("/")
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < _TASKS) or (slash and not component):
        msg = f"{text!r} is no task; give its number, or COMPONENT/NUMBER, which errors and `heron metrics` show"
        raise click.BadParameter(msg)
    return TaskChoice(component, int(number))


task_argument = click.argument("task", callback=_choice)

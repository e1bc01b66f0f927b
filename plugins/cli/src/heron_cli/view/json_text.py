"""How commands print JSON."""

from __future__ import annotations

import click
import msgspec

__all__ = ["print_json"]


def print_json(value: object) -> None:
    """Any of Heron's values, readable; a path is text."""
    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode())

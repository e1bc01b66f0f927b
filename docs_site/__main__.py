"""``python -m docs_site``: the steps of ``./dev docs`` before and after mkdocs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from docs_site.offline import loaded_from_network
from docs_site.rooms import replaced, rooms_text
from docs_site.site_source import write_site_source
from heron.errors import ConfigError

_ROOT = Path(__file__).resolve().parents[1]


@click.group()
def main() -> None:
    """Prepare and check the documentation site."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("site", type=click.Path(path_type=Path))
def write(folder: Path, site: Path) -> None:
    """Write what mkdocs builds SITE from into FOLDER."""
    try:
        write_site_source(_ROOT, folder.resolve(), site.resolve())
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


@main.command()
def rooms() -> None:
    """Write the rooms of packages into docs/rooms.md."""
    page = _ROOT / "docs" / "rooms.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), rooms_text(_ROOT)), encoding="utf-8")


@main.command()
@click.argument("site", type=click.Path(path_type=Path, exists=True))
def check(site: Path) -> None:
    """Fail when a page of SITE loads anything from the network."""
    found = loaded_from_network(site)
    for line in found:
        click.echo(line, err=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

"""The table of contents: which pages the site has, and under which headings."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from heron.errors import ConfigError

__all__ = ["Contents", "expanded", "modules", "paths", "reference_page"]

Contents = str | list["Contents"] | dict[str, "Contents"]
"""As mkdocs has it: a page, entries one after the other, or entries below a title."""

_MODULE = "module "


def expanded(contents: Contents, documents: Sequence[str]) -> Contents:
    """Fills in patterns, and gives modules their pages.

    Raises:
        ConfigError: when a document is in no entry, or an entry has no document.
    """
    filled = _expanded(contents, documents)
    absent = sorted(set(documents).difference(paths(filled)))
    if absent:
        msg = f"docs_site/contents.yml: no entry has {', '.join(absent)}; add it below the heading of its reader"
        raise ConfigError(msg)
    return filled


def paths(contents: Contents) -> Iterator[str]:
    """The pages, in order."""
    match contents:
        case str():
            yield contents
        case list():
            for entry in contents:
                yield from paths(entry)
        case dict():
            for entry in contents.values():
                yield from paths(entry)


def modules(contents: Contents) -> list[str]:
    """The modules whose reference is generated."""
    return [entry.removeprefix(_MODULE) for entry in paths(contents) if entry.startswith(_MODULE)]


def reference_page(module: str) -> str:
    """The path of a module's page."""
    return f"reference/{module}.md"


def _expanded(contents: Contents, documents: Sequence[str]) -> Contents:
    match contents:
        case dict():
            return {title: _expanded(entry, documents) for title, entry in contents.items()}
        case list():
            return [_expanded(entry, documents) for entry in contents]
    if contents.startswith(_MODULE):
        module = contents.removeprefix(_MODULE)
        return {module: reference_page(module)}
    found = fnmatch.filter(documents, contents)
    if not found:
        msg = f"docs_site/contents.yml: no document is {contents!r}"
        raise ConfigError(msg)
    return list[Contents](found) if "*" in contents else contents

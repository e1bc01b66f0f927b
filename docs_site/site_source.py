"""Writes the folder from which mkdocs builds the site: documents, linked files, pages of modules, settings."""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
from pathlib import Path

import yaml

from docs_site.contents import Contents, expanded, modules, reference_page
from docs_site.documents import documents, linked_paths

__all__ = ["write_site_source"]

_SETTINGS = "docs_site/mkdocs.yml"
_CONTENTS = "docs_site/contents.yml"
_LISTING = "files.md"


def write_site_source(root: Path, folder: Path, site: Path) -> Path:
    """Replaces `folder` with the source of a site in `site`; returns the settings file for ``mkdocs build -f``.

    The pages have the paths of the documents, so that links between them stay as they are. A link to a folder leads to
    a page that lists its files.

    Raises:
        ConfigError: when the table of contents and the documents do not agree.
    """
    shutil.rmtree(folder, ignore_errors=True)
    listed = documents(root)
    contents: Contents = yaml.safe_load((root / _CONTENTS).read_text(encoding="utf-8"))
    source = folder / "pages"
    for document in listed:
        _write_document(root, source, document)
    for module in modules(contents):
        _write(source / reference_page(module), f"# {module}\n\n::: {module}\n")
    settings = {
        "INHERIT": str(root / _SETTINGS),
        "docs_dir": str(source),
        "site_dir": str(site),
        "nav": expanded(contents, listed),
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": _sources(root)}}}},
    }
    path = folder / "mkdocs.yml"
    _write(path, json.dumps(settings, indent=2))  # JSON is YAML
    return path


def _write_document(root: Path, source: Path, document: str) -> None:
    text = (root / document).read_text(encoding="utf-8")
    for linked in sorted(linked_paths(document, text)):
        path = root / linked
        if path.is_dir():
            names = sorted(each.name for each in path.iterdir() if not each.name.startswith((".", "__")))
            _write(source / linked / _LISTING, "\n".join([f"# {linked}", "", *(f"- `{name}`" for name in names), ""]))
            text = _with_listing(text, posixpath.relpath(linked, posixpath.dirname(document) or "."))
        elif path.is_file() and path.suffix != ".md":
            (source / linked).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, source / linked)
    _write(source / document, text)


def _with_listing(text: str, folder: str) -> str:
    return re.sub(rf"\]\({re.escape(folder)}/?\)", f"]({folder}/{_LISTING})", text)


def _sources(root: Path) -> list[str]:
    return [str(path) for path in (root / "heron-core" / "src", *sorted(root.glob("plugins/*/src")))]


def _write(path: Path, text: str) -> None:
    os.makedirs(path.parent, exist_ok=True)
    path.write_text(text, encoding="utf-8")
